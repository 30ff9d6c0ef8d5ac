"""The text of the core of any convolution: a register-blocked implicit matrix product over channels-last images.

Owns the division of a convolution into tasks. Sizes, strides, blocking and the epilogue are run-time values, so that a core is
compiled once per machine. It does not depend on the graph or on the choice of a tile.
"""

from __future__ import annotations

from inductor.artifact.format import SourceUnit
from inductor.cpp.conv_parts import shared_text
from inductor.cpp.gemm_core import Tile

__all__ = ["conv_core"]


def conv_core(tile: Tile) -> SourceUnit:
    """The translation unit of a tile. It defines

    void SYMBOL(const ConvTask *, const Runtime *)
    void SYMBOL_pack(const ConvTask *, void *panels)

    SYMBOL is the name of the unit. A tap that is read backwards has a negative stride in w. The packed form has
    groups * panels(columns) * kh * kw * channels * NR elements.
    """
    symbol = tile.symbol("conv")
    entries = f"""
extern "C" void {symbol}(const ConvTask *v, const Runtime *rt) {{ convolve(v, rt); }}
extern "C" void {symbol}_pack(const ConvTask *v, void *panels) {{
  pack_panels(v, (T *)panels, 0, v->groups * panels_of(v->columns));
}}
"""
    return SourceUnit(symbol, shared_text(tile) + _BODY + entries, reusable=True)


_BODY = r"""
enum { TASK_BYTES = 192 << 10 }; /* of the image and the result of a task, which stay in the second-level cache */

typedef struct {
  const ConvTask *v;
  const Runtime *rt;
  const T *packed; /* or null: out of memory */
  long lines, line_blocks, panels, panel_blocks; /* lines of the result and panels of a task */
  long width, staged;                            /* of a staged line, in places; whether lines are staged */
} Job;

static void run_tasks(void *ctx, long begin, long end) {
  Job *job = (Job *)ctx;
  const ConvTask *v = job->v;
  long group_panels = panels_of(v->columns), staged_lines = (job->lines - 1) * v->sh + (v->kh - 1) * v->dh + 1;
  long columns = job->panels * NR < v->columns ? job->panels * NR : v->columns;
  long staged_size = job->staged ? (staged_lines * job->width * v->channels + 63) / 64 * 64 : 0;
  long block_size = v->y ? 0 : (job->lines - 1) * v->y_h + (v->ow - 1) * v->y_w + columns;
  long size = staged_size + block_size;
  T *scratch = size > 0 ? (T *)job->rt->scratch(job->rt, 0, size * (long)sizeof(T)) : 0, *block = scratch ? scratch + staged_size : 0;
  long staged = -1;
  for (long task = begin; task < end; task++) {
    long jb = task % job->panel_blocks, rest = task / job->panel_blocks;
    long pb = rest % job->line_blocks, g = rest / job->line_blocks % v->groups, n = rest / job->line_blocks / v->groups;
    long p0 = pb * job->lines, p1 = p0 + job->lines < v->oh ? p0 + job->lines : v->oh;
    long j0 = jb * job->panels, j1 = j0 + job->panels < group_panels ? j0 + job->panels : group_panels;
    long last = j1 * NR < v->columns ? j1 * NR : v->columns;
    if (size > 0 && !scratch) {
      plainly(v, n, g, p0, p1, j0 * NR, last);
      continue;
    }
    const T *x = (const T *)v->x + n * v->x_n + g * v->x_g;
    long image = n * v->y_n + g * v->y_g;
    T *y = v->y ? (T *)v->y : before(block, image + p0 * v->y_h + j0 * NR);
    Image m;
    if (job->staged) {
      if (rest != staged) stage(v, job->width, x, p0, p1, scratch);
      staged = rest;
      long w = v->channels, h = job->width * w;
      m = (Image){scratch, v->sh * h, v->sw * w, v->dh * h, v->dw * w};
    } else {
      m = (Image){x + (p0 * v->sh - v->ph) * v->x_h - v->pw * v->x_w, v->sh * v->x_h, v->sw * v->x_w, v->dh * v->x_h,
                  v->dw * v->x_w};
    }
    lines(v, &m, job->packed + g * group_panels * v->kh * v->kw * v->channels * NR, y + image, p0, p1, j0, j1);
    if (v->epilogue) v->epilogue(v->args, y, g, (n * v->oh + p0) * v->ow, (n * v->oh + p1) * v->ow, j0 * NR, last);
  }
}

static void convolve(const ConvTask *v, const Runtime *rt) {
  if (v->images <= 0 || v->oh <= 0 || v->ow <= 0 || v->columns <= 0) return;
  long panels = panels_of(v->columns);
  double work = 2.0 * v->images * v->oh * v->ow * v->groups * v->columns * v->kh * v->kw * v->channels;
  int parallel = rt->threads > 1 && work > 2e6;
  Job job = {v, rt, (const T *)v->packed, v->oh, 1, panels, 1, (v->ow - 1) * v->sw + (v->kw - 1) * v->dw + 1, 0};
  if (!job.packed) {
    T *to = (T *)rt->scratch(rt, 1, v->groups * panels * v->kh * v->kw * v->channels * NR * (long)sizeof(T));
    if (!to) {
      plainly_all(v);
      return;
    }
    PackJob pack = {v, to};
    rt->parallel_for(rt, run_pack, &pack, v->groups * panels, parallel ? 1 : v->groups * panels);
    job.packed = to;
  }
  job.staged = v->x_c != 1 || v->ph > 0 || v->pw > 0 || (v->oh - 1) * v->sh - v->ph + (v->kh - 1) * v->dh >= v->ih ||
               job.width - v->pw > v->iw;
  /* Lines of a task: its part of the image and of the result stay near; then at least two tasks a thread. */
  long line = (v->sh * job.width * v->channels + v->ow * v->columns) * (long)sizeof(T);
  long most = TASK_BYTES / line;
  if (most < 1) most = 1;
  job.line_blocks = (v->oh + most - 1) / most;
  long wanted = parallel ? 2 * rt->threads : 1, others = v->images * v->groups;
  while (others * job.line_blocks * job.panel_blocks < wanted && job.panels > 1) {
    job.panels = (job.panels + 1) / 2;
    job.panel_blocks = (panels + job.panels - 1) / job.panels;
  }
  while (others * job.line_blocks * job.panel_blocks < wanted && job.line_blocks < v->oh) job.line_blocks++;
  job.lines = (v->oh + job.line_blocks - 1) / job.line_blocks;
  job.line_blocks = (v->oh + job.lines - 1) / job.lines;
  long tasks = others * job.line_blocks * job.panel_blocks;
  rt->parallel_for(rt, run_tasks, &job, tasks, parallel ? 1 : tasks);
}
"""
