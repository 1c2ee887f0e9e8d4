"""Rows written as svmlight text that reads back to the same bits."""

import gzip
from pathlib import Path

import pyarrow as pa
import scipy.sparse as sp

_PACK = {".gz": gzip.compress, ".zst": lambda text: pa.compress(text, codec="zstd", asbytes=True)}


def write_svmlight(path, X, y, *, group=None, zero_based=False):
    lines = []
    for i, row in enumerate(sp.csr_matrix(X)):
        entries = zip(row.indices.tolist(), row.data, strict=True)
        query = [] if group is None else [f"qid:{group[i]}"]
        lines.append(" ".join([str(y[i]), *query, *(f"{j + (not zero_based)}:{value}" for j, value in entries)]))
    text = "".join(f"{line}\n" for line in lines).encode()
    Path(path).write_bytes(_PACK.get(Path(path).suffix, bytes)(text))
