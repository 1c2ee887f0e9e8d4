"""Ctrl-C, or an error, in the midst of a method, where a test wants it."""


def interrupt_at(monkeypatch, owner, method, call, event=KeyboardInterrupt):
    """Raise ``event`` in the given call of a method, counted over all objects of the class; returns the calls."""
    real, calls = getattr(owner, method), []

    def interrupted(self, *arguments, **options):
        calls.append(None)
        if len(calls) == call:
            raise event
        return real(self, *arguments, **options)

    monkeypatch.setattr(owner, method, interrupted)
    return calls
