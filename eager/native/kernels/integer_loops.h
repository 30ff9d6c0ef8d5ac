/* Made by `python -m eager.optable.c_loops` from the scalar rules of the op table. */

CLONES static void eq_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void ne_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void lt_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void le_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void gt_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void ge_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void logical_and_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_and_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = (x0 != 0) & (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_or_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = (x0 != 0) | (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_vv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_vv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_vs_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_vs_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_sv_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_xor_sv_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int t0 = (x0 != 0) ^ (x1 != 0);
        out[i] = t0;
    }
}

CLONES static void logical_not_v_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const int t0 = x0 == 0;
        out[i] = t0;
    }
}

CLONES static void logical_not_v_i32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int t0 = x0 == 0;
        out[i] = t0;
    }
}

CLONES static void logical_not_v_i64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int t0 = x0 == 0;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_and_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = x0 & x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_or_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = x0 | x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_xor_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = x0 ^ x1;
        out[i] = t0;
    }
}

CLONES static void bitwise_not_v_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t t0 = !x0;
        out[i] = t0;
    }
}

CLONES static void bitwise_not_v_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = ~x0;
        out[i] = t0;
    }
}

CLONES static void bitwise_not_v_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = ~x0;
        out[i] = t0;
    }
}

CLONES static void maximum_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = maximum_bool(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = maximum_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = maximum_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t t0 = maximum_bool(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = maximum_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = maximum_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = maximum_bool(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = maximum_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = maximum_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = minimum_bool(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = minimum_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = minimum_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vs_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t *p0 = ctx->in[0];
    const uint8_t x1 = (uint8_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x0 = p0[i] != 0;
        const uint8_t t0 = minimum_bool(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = minimum_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = minimum_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_sv_bool(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const uint8_t x0 = (uint8_t)ctx->integer[0];
    const uint8_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const uint8_t x1 = p1[i] != 0;
        const uint8_t t0 = minimum_bool(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = minimum_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = minimum_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void add_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 + (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void add_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 + (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void add_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 + (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void add_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 + (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void add_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 + (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void add_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 + (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void sub_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 - (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void sub_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 - (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void sub_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 - (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void sub_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 - (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void sub_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 - (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void sub_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 - (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void mul_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 * (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void mul_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 * (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void mul_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 * (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void mul_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 * (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void mul_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = (int32_t)((uint32_t)x0 * (uint32_t)x1);
        out[i] = t0;
    }
}

CLONES static void mul_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = (int64_t)((uint64_t)x0 * (uint64_t)x1);
        out[i] = t0;
    }
}

CLONES static void floor_divide_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = floordiv_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void floor_divide_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = floordiv_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void floor_divide_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = floordiv_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void floor_divide_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = floordiv_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void floor_divide_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = floordiv_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void floor_divide_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = floordiv_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void remainder_vv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t x1 = p1[i];
        const int32_t t0 = remainder_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void remainder_vv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t x1 = p1[i];
        const int64_t t0 = remainder_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void remainder_vs_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t *p0 = ctx->in[0];
    const int32_t x1 = (int32_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x0 = p0[i];
        const int32_t t0 = remainder_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void remainder_vs_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t *p0 = ctx->in[0];
    const int64_t x1 = (int64_t)ctx->integer[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x0 = p0[i];
        const int64_t t0 = remainder_i64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void remainder_sv_i32(const Pointwise *ctx, long begin, long end)
{
    int32_t *out = ctx->out;
    const int32_t x0 = (int32_t)ctx->integer[0];
    const int32_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int32_t x1 = p1[i];
        const int32_t t0 = remainder_i32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void remainder_sv_i64(const Pointwise *ctx, long begin, long end)
{
    int64_t *out = ctx->out;
    const int64_t x0 = (int64_t)ctx->integer[0];
    const int64_t *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const int64_t x1 = p1[i];
        const int64_t t0 = remainder_i64(x0, x1);
        out[i] = t0;
    }
}

static const IntegerOp integer_ops[] = {
    {2, 1, 0, {[3][0] = eq_vv_bool, [3][1] = eq_vv_i32, [3][2] = eq_vv_i64, [1][0] = eq_vs_bool, [1][1] = eq_vs_i32, [1][2] = eq_vs_i64, [2][0] = eq_sv_bool, [2][1] = eq_sv_i32, [2][2] = eq_sv_i64}},
    {2, 1, 0, {[3][0] = ne_vv_bool, [3][1] = ne_vv_i32, [3][2] = ne_vv_i64, [1][0] = ne_vs_bool, [1][1] = ne_vs_i32, [1][2] = ne_vs_i64, [2][0] = ne_sv_bool, [2][1] = ne_sv_i32, [2][2] = ne_sv_i64}},
    {2, 1, 0, {[3][0] = lt_vv_bool, [3][1] = lt_vv_i32, [3][2] = lt_vv_i64, [1][0] = lt_vs_bool, [1][1] = lt_vs_i32, [1][2] = lt_vs_i64, [2][0] = lt_sv_bool, [2][1] = lt_sv_i32, [2][2] = lt_sv_i64}},
    {2, 1, 0, {[3][0] = le_vv_bool, [3][1] = le_vv_i32, [3][2] = le_vv_i64, [1][0] = le_vs_bool, [1][1] = le_vs_i32, [1][2] = le_vs_i64, [2][0] = le_sv_bool, [2][1] = le_sv_i32, [2][2] = le_sv_i64}},
    {2, 1, 0, {[3][0] = gt_vv_bool, [3][1] = gt_vv_i32, [3][2] = gt_vv_i64, [1][0] = gt_vs_bool, [1][1] = gt_vs_i32, [1][2] = gt_vs_i64, [2][0] = gt_sv_bool, [2][1] = gt_sv_i32, [2][2] = gt_sv_i64}},
    {2, 1, 0, {[3][0] = ge_vv_bool, [3][1] = ge_vv_i32, [3][2] = ge_vv_i64, [1][0] = ge_vs_bool, [1][1] = ge_vs_i32, [1][2] = ge_vs_i64, [2][0] = ge_sv_bool, [2][1] = ge_sv_i32, [2][2] = ge_sv_i64}},
    {2, 1, 0, {[3][0] = logical_and_vv_bool, [3][1] = logical_and_vv_i32, [3][2] = logical_and_vv_i64, [1][0] = logical_and_vs_bool, [1][1] = logical_and_vs_i32, [1][2] = logical_and_vs_i64, [2][0] = logical_and_sv_bool, [2][1] = logical_and_sv_i32, [2][2] = logical_and_sv_i64}},
    {2, 1, 0, {[3][0] = logical_or_vv_bool, [3][1] = logical_or_vv_i32, [3][2] = logical_or_vv_i64, [1][0] = logical_or_vs_bool, [1][1] = logical_or_vs_i32, [1][2] = logical_or_vs_i64, [2][0] = logical_or_sv_bool, [2][1] = logical_or_sv_i32, [2][2] = logical_or_sv_i64}},
    {2, 1, 0, {[3][0] = logical_xor_vv_bool, [3][1] = logical_xor_vv_i32, [3][2] = logical_xor_vv_i64, [1][0] = logical_xor_vs_bool, [1][1] = logical_xor_vs_i32, [1][2] = logical_xor_vs_i64, [2][0] = logical_xor_sv_bool, [2][1] = logical_xor_sv_i32, [2][2] = logical_xor_sv_i64}},
    {1, 1, 0, {[1][0] = logical_not_v_bool, [1][1] = logical_not_v_i32, [1][2] = logical_not_v_i64}},
    {2, 0, 0, {[3][0] = bitwise_and_vv_bool, [3][1] = bitwise_and_vv_i32, [3][2] = bitwise_and_vv_i64, [1][0] = bitwise_and_vs_bool, [1][1] = bitwise_and_vs_i32, [1][2] = bitwise_and_vs_i64, [2][0] = bitwise_and_sv_bool, [2][1] = bitwise_and_sv_i32, [2][2] = bitwise_and_sv_i64}},
    {2, 0, 0, {[3][0] = bitwise_or_vv_bool, [3][1] = bitwise_or_vv_i32, [3][2] = bitwise_or_vv_i64, [1][0] = bitwise_or_vs_bool, [1][1] = bitwise_or_vs_i32, [1][2] = bitwise_or_vs_i64, [2][0] = bitwise_or_sv_bool, [2][1] = bitwise_or_sv_i32, [2][2] = bitwise_or_sv_i64}},
    {2, 0, 0, {[3][0] = bitwise_xor_vv_bool, [3][1] = bitwise_xor_vv_i32, [3][2] = bitwise_xor_vv_i64, [1][0] = bitwise_xor_vs_bool, [1][1] = bitwise_xor_vs_i32, [1][2] = bitwise_xor_vs_i64, [2][0] = bitwise_xor_sv_bool, [2][1] = bitwise_xor_sv_i32, [2][2] = bitwise_xor_sv_i64}},
    {1, 0, 0, {[1][0] = bitwise_not_v_bool, [1][1] = bitwise_not_v_i32, [1][2] = bitwise_not_v_i64}},
    {2, 0, 0, {[3][0] = maximum_vv_bool, [3][1] = maximum_vv_i32, [3][2] = maximum_vv_i64, [1][0] = maximum_vs_bool, [1][1] = maximum_vs_i32, [1][2] = maximum_vs_i64, [2][0] = maximum_sv_bool, [2][1] = maximum_sv_i32, [2][2] = maximum_sv_i64}},
    {2, 0, 0, {[3][0] = minimum_vv_bool, [3][1] = minimum_vv_i32, [3][2] = minimum_vv_i64, [1][0] = minimum_vs_bool, [1][1] = minimum_vs_i32, [1][2] = minimum_vs_i64, [2][0] = minimum_sv_bool, [2][1] = minimum_sv_i32, [2][2] = minimum_sv_i64}},
    {2, 0, 0, {[3][1] = add_vv_i32, [3][2] = add_vv_i64, [1][1] = add_vs_i32, [1][2] = add_vs_i64, [2][1] = add_sv_i32, [2][2] = add_sv_i64}},
    {2, 0, 0, {[3][1] = sub_vv_i32, [3][2] = sub_vv_i64, [1][1] = sub_vs_i32, [1][2] = sub_vs_i64, [2][1] = sub_sv_i32, [2][2] = sub_sv_i64}},
    {2, 0, 0, {[3][1] = mul_vv_i32, [3][2] = mul_vv_i64, [1][1] = mul_vs_i32, [1][2] = mul_vs_i64, [2][1] = mul_sv_i32, [2][2] = mul_sv_i64}},
    {2, 0, 1, {[3][1] = floor_divide_vv_i32, [3][2] = floor_divide_vv_i64, [1][1] = floor_divide_vs_i32, [1][2] = floor_divide_vs_i64, [2][1] = floor_divide_sv_i32, [2][2] = floor_divide_sv_i64}},
    {2, 0, 1, {[3][1] = remainder_vv_i32, [3][2] = remainder_vv_i64, [1][1] = remainder_vs_i32, [1][2] = remainder_vs_i64, [2][1] = remainder_sv_i32, [2][2] = remainder_sv_i64}},
};

/* The op and its place in the table. */
#define INTEGER_KERNELS KERNEL(eq, 0) KERNEL(ne, 1) KERNEL(lt, 2) KERNEL(le, 3) KERNEL(gt, 4) KERNEL(ge, 5) KERNEL(logical_and, 6) KERNEL(logical_or, 7) KERNEL(logical_xor, 8) KERNEL(logical_not, 9) KERNEL(bitwise_and, 10) KERNEL(bitwise_or, 11) KERNEL(bitwise_xor, 12) KERNEL(bitwise_not, 13) KERNEL(maximum, 14) KERNEL(minimum, 15) KERNEL(add, 16) KERNEL(sub, 17) KERNEL(mul, 18) KERNEL(floor_divide, 19) KERNEL(remainder, 20)
