"""SummaryWriter: writes scalars, histograms, pictures and texts of a run to event files for TensorBoard."""
from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from eager.utils.tensorboard import summaries
from eager.utils.tensorboard.protocol import Event, EventFileWriter, SessionLog


class FileWriter:
    """One event file in a folder."""

    def __init__(self, log_dir: str | os.PathLike[str], max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an Event with a step (a number or a one-element tensor) and a time (by default the present)."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a summary with a step and a time."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write all pending events to disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write all pending events to disk and close the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes event files to `log_dir` (by default `runs/<time>_<host><comment>`), in the background.

    purge_step: TensorBoard hides the events of an earlier, crashed run from this step on. max_queue: number of events
    before a write to disk; flush_secs: seconds between writes; filename_suffix: suffix of the event files. After
    `close`, the next `add_*` opens another file. Usable as a context manager.
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:  # fmt: skip
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        """The open writer of this run's main folder."""
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=self.purge_step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    # ---- numbers ----

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:  # fmt: skip
        """Write one number. Raises: ValueError for a tensor of several elements."""
        self._add(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
                    walltime: float | None = None) -> None:  # fmt: skip
        """Write several numbers under one tag, drawn together; each becomes a separate run in a subfolder."""
        self._get_file_writer()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self.all_writers:
                self.all_writers[folder] = self._open(folder)
            self.all_writers[folder].add_summary(summaries.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a tensor's values, as float32."""
        self._add(summaries.tensor_of(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:  # fmt: skip
        """Write the distribution of values of any shape. bins: "tensorflow", or an argument of `numpy.histogram`."""
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float,  # noqa: A002
                          bucket_limits: Sequence[float], bucket_counts: Sequence[float], global_step: Any = None,
                          walltime: float | None = None) -> None:  # fmt: skip
        """Write a histogram with given counts, one per bucket limit.

        Raises: ValueError for differing numbers of them.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summaries.histogram_raw(tag, min, max, num, sum, sum_squares, list(bucket_limits), list(bucket_counts))
        self._add(made, global_step, walltime)

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
                    hparam_domain_discrete: dict[str, Sequence[Any]] | None = None, run_name: str | None = None,
                    global_step: Any = None) -> None:  # fmt: skip
        """Write hyperparameters and their final metrics, as a separate run in a subfolder.

        Raises: TypeError unless both are dicts.
        """
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as run:
            for summary in summaries.hparams(hparam_dict, metric_dict, hparam_domain_discrete):
                run._add(summary, global_step, None)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    # ---- pictures, sound, text ----

    def add_image(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:  # fmt: skip
        """Write a picture of 1, 3 or 4 channels: uint8, or numbers in [0, 1]. dataformats: the order of its dims."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:  # fmt: skip
        """Write a batch of pictures, tiled."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None) -> None:
        """Write a matplotlib figure, or several of one size, as a picture."""
        if isinstance(figure, list):
            self.add_images(tag, [summaries.figure_picture(f, close) for f in figure], global_step, walltime)
        else:
            self.add_image(tag, summaries.figure_picture(figure, close), global_step, walltime)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:  # fmt: skip
        """Write a sound of one channel, with values in [-1, 1]."""
        self._add(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a text, which TensorBoard renders as Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_embedding(self, mat: Any, metadata: Sequence[Any] | None = None, label_img: Any = None, global_step: Any = None,
                      tag: str = "default", metadata_header: Sequence[str] | None = None) -> None:  # fmt: skip
        """Write points (n, d), n > 1, for the projector, each with a label or a row of labels.

        Raises: ValueError for another shape or number of labels; NotImplementedError for label_img.
        """
        points = summaries.as_array(mat)
        if points.ndim != 2 or (metadata is not None and len(metadata) != len(points)):
            raise ValueError(f"add_embedding: mat of shape {points.shape} and "
                             f"{'no' if metadata is None else len(metadata)} labels; allowed: (n, d) and n labels")  # fmt: skip
        if label_img is not None:
            raise NotImplementedError("add_embedding: label_img")
        name = f"{'00000' if global_step is None else f'{int(global_step):05d}'}/{tag}"
        folder = Path(self.log_dir) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tensors.tsv").write_text("".join("\t".join(str(v) for v in row) + "\n" for row in points.tolist()))
        lines = ["embeddings {", f'tensor_name: "{tag}:{name.partition("/")[0]}"', f'tensor_path: "{name}/tensors.tsv"']
        if metadata is not None:
            rows = [row if isinstance(row, (list, tuple)) else [row] for row in metadata]
            table = [metadata_header, *rows] if metadata_header else rows
            (folder / "metadata.tsv").write_text("".join("\t".join(str(v) for v in row) + "\n" for row in table))
            lines.append(f'metadata_path: "{name}/metadata.tsv"')
        with (Path(self.log_dir) / "projector_config.pbtxt").open("a") as config:
            config.write("\n".join([*lines, "}", ""]))

    def _add(self, summary: Any, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, step, walltime)

    def __getattr__(self, name: str) -> Any:
        if name in _MISSING:
            raise NotImplementedError(f"SummaryWriter.{name}")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # ---- the end ----

    def flush(self) -> None:
        """Write all pending events to disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write all pending events to disk and close the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


# Methods of torch's SummaryWriter that are not implemented.
_MISSING = frozenset({
    "add_custom_scalars", "add_custom_scalars_marginchart", "add_custom_scalars_multilinechart", "add_graph",
    "add_image_with_boxes", "add_mesh", "add_onnx_graph", "add_pr_curve", "add_pr_curve_raw", "add_video",
})  # fmt: skip
