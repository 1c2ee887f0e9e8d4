"""Reports: what was learned, how sure that is and how well it does, as one HTML file without anything around it.

Every estimator has a method ``report``, which writes such a page. What the page shows beside the certificate is the
estimator's own content; the parts that stories are made of are here, one file each.
"""

from .page import page, write

__all__ = ["page", "write"]
