class InteriorPoint:
    def __init__(self, n_threads=1):
        pass

    def handles(self, p):
        return False

    def pays(self, p):
        return False
