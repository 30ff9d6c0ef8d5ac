"""Summaries: the records that `add_*` calls write, made from arrays."""
from __future__ import annotations

import io
import math
import struct
import wave
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager._tensor.tensor import Tensor
from eager.utils.tensorboard.protocol import (
    HistogramProto,
    Summary,
    SummaryMetadata,
    TensorProto,
    TensorShapeProto,
    hparams_types,
)

Array = Any


def as_array(x: Any) -> Array:
    """Numbers, sequences, arrays and tensors as an ndarray."""
    if isinstance(x, Tensor):
        t = x.detach().cpu()
        return (t.float() if t.dtype.name == "bfloat16" else t).numpy()
    if isinstance(x, (list, tuple)) and any(isinstance(v, Tensor) for v in x):
        return np.stack([as_array(v) for v in x])
    return np.asarray(x)


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """A summary of one number. Raises: ValueError for a value of several elements."""
    a = as_array(value)
    if a.size != 1:
        raise ValueError(f"add_scalar: a value of shape {a.shape} for {tag!r}; allowed: a single number")
    number = float(a.reshape(()))
    if not new_style and not double_precision:
        return Summary(value=[Summary.Value(tag=tag, simple_value=number)])
    data = {"double_val": [number], "dtype": "DT_DOUBLE"} if double_precision else {"float_val": [number], "dtype": "DT_FLOAT"}
    return Summary(value=[Summary.Value(tag=tag, tensor=TensorProto(**data), metadata=_metadata("scalars"))])


def _metadata(plugin: str, content: bytes = b"") -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


# ---- histograms ----


def _default_edges() -> Array:
    """TensorFlow's bucket edges: each 1.1 times the previous one from 1e-12 to 1e20, for both signs, with 0 between."""
    count = math.ceil(math.log(1e20 / 1e-12, 1.1))
    positive = 1e-12 * 1.1 ** np.arange(count)
    return np.concatenate([-positive[::-1], [0.0], positive])


def histogram(tag: str, values: Any, bins: str | int | Sequence[float] = "tensorflow", max_bins: int | None = None) -> Any:
    """A summary of a distribution. bins: "tensorflow", a rule of numpy, a count, or the edges.

    Raises: ValueError for no values, or no value within the bins.
    """
    a = as_array(values).astype(np.float64).reshape(-1)
    if a.size == 0:
        raise ValueError(f"add_histogram: no values for {tag!r}")
    counts, edges = np.histogram(a, bins=_default_edges() if isinstance(bins, str) and bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        edges = np.unique(np.append(edges[:-1:step], edges[-1]))
    held = np.flatnonzero(counts)
    if held.size == 0:
        raise ValueError(f"add_histogram: no value of {tag!r} lies within the bins")
    # Empty buckets on both sides are left out, except one below: a bucket is drawn from the previous limit.
    first, last = held[0], held[-1] + 1
    limits, kept = edges[first : last + 1], np.concatenate([[0], counts[first:last]])
    return histogram_raw(tag, a.min(), a.max(), a.size, a.sum(), a @ a, limits.tolist(), kept.tolist())


def histogram_raw(tag: str, low: float, high: float, num: int, total: float, sum_squares: float, bucket_limits: list[float],
                  bucket_counts: list[float]) -> Any:  # fmt: skip
    """A summary of a histogram with given statistics and bucket counts."""
    proto = HistogramProto(min=low, max=high, num=num, sum=total, sum_squares=sum_squares, bucket_limit=bucket_limits,
                           bucket=bucket_counts)  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, histo=proto)])


# ---- pictures and sound ----


def _hwc(picture: Array, dataformats: str) -> Array:
    """A picture as (h, w, c), from any order of its dims; the pictures of a batch are tiled in about a square."""
    order = dataformats.upper()
    if len(set(order)) != picture.ndim or not set(order) <= set("NCHW"):
        raise ValueError(f"size of input tensor and input format are different. tensor shape: {picture.shape}, input_format: "
                         f"{dataformats}")  # fmt: skip
    full = picture.transpose([order.index(axis) for axis in "NHWC" if axis in order])
    if "C" not in order:
        full = full[..., None]
    if "N" in order:
        n, h, w, c = full.shape
        columns = math.ceil(math.sqrt(n))
        rows = -(-n // columns)
        full = np.concatenate([full, np.zeros((rows * columns - n, h, w, c), full.dtype)])
        full = full.reshape(rows, columns, h, w, c).transpose(0, 2, 1, 3, 4).reshape(rows * h, columns * w, c)
    return np.repeat(full, 3, 2) if full.shape[2] == 1 else full


def image(tag: str, picture: Any, dataformats: str) -> Any:
    """A summary of a picture; uint8 values unchanged, other dtypes as fractions of white."""
    a = _hwc(as_array(picture), dataformats)
    levels = a if a.dtype == np.uint8 else np.clip(a.astype(np.float32) * 255.0, 0, 255).astype(np.uint8)
    height, width, channels = levels.shape
    proto = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png(levels))
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def png(levels: Array) -> bytes:
    """A uint8 array (h, w, c), c = 1, 3 or 4, as a PNG file. Source: RFC 2083."""
    height, width, channels = levels.shape
    if channels not in (3, 4):
        raise ValueError(f"image: {channels} channels; allowed: 1, 3 or 4")

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), levels.reshape(height, -1)], 1)  # 0: the row is not filtered
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")


def figure_picture(figure: Any, close: bool) -> Array:
    """A matplotlib figure as (3, h, w) uint8."""
    figure.canvas.draw()
    levels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    if close:
        figure.clear()
    return levels.transpose(2, 0, 1)


def audio(tag: str, sound: Any, sample_rate: int) -> Any:
    """A summary of a sound (1, n) or (n,), with values in [-1, 1]."""
    a = np.clip(as_array(sound).astype(np.float64).reshape(-1), -1, 1)
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((a * np.iinfo(np.int16).max).astype("<i2").tobytes())
    proto = Summary.Audio(sample_rate=sample_rate, num_channels=1, length_frames=a.size, encoded_audio_string=out.getvalue(),
                          content_type="audio/wav")  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, audio=proto)])


# ---- text, tensors, hyperparameters ----


def text(tag: str, content: str) -> Any:
    """A summary of a text."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype="DT_STRING", string_val=[content.encode("utf-8")], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=_metadata("text"), tensor=tensor)])


def tensor_of(tag: str, value: Any) -> Any:
    """A summary of a tensor's values, as float32."""
    a = np.ascontiguousarray(as_array(value), np.float32)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in a.shape])
    return Summary(value=[Summary.Value(tag=tag, metadata=_metadata("tensor"), tensor=TensorProto(
        dtype="DT_FLOAT", tensor_content=a.tobytes(), tensor_shape=shape))])  # fmt: skip


def hparams(given: dict[str, Any], metrics: dict[str, Any], domains: dict[str, Sequence[Any]] | None) -> list[Any]:
    """The experiment, session start and session end records of these hyperparameters.

    Raises: ValueError for a value of another type than int, float, str, bool or a tensor of one element.
    """
    data, api = hparams_types()
    start = data.SessionStartInfo()
    infos = []
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, Tensor):
            value = value.item()
        if isinstance(value, bool):
            kind, start.hparams[name].bool_value = "BOOL", value
        elif isinstance(value, (int, float)):
            kind, start.hparams[name].number_value = "FLOAT64", float(value)
        elif isinstance(value, str):
            kind, start.hparams[name].string_value = "STRING", value
        else:
            raise ValueError(f"add_hparams: {name!r} is a {type(value).__name__}; allowed: int, float, str, bool or a tensor of one")
        info = api.HParamInfo(name=name, type=api.DataType.Value(f"DATA_TYPE_{kind}"))
        if domains is not None and name in domains:
            info.domain_discrete.extend(domains[name])
        infos.append(info)
    experiment = api.Experiment(hparam_infos=infos, metric_infos=[api.MetricInfo(name=api.MetricName(tag=k)) for k in metrics])
    end = data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    parts = {"experiment": {"experiment": experiment}, "session_start_info": {"session_start_info": start},
             "session_end_info": {"session_end_info": end}}  # fmt: skip
    found = []
    for tag, content in parts.items():
        written = data.HParamsPluginData(version=0, **content).SerializeToString()
        found.append(Summary(value=[Summary.Value(tag=f"_hparams_/{tag}", metadata=_metadata("hparams", written))]))
    return found
