/* Made by `python -m eager.optable.c_loops` from the scalar rules of the op table. */

CLONES static void with_zero_slope_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        out[i] = x0;
    }
}

CLONES static void with_zero_slope_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        out[i] = x0;
    }
}

CLONES static void with_zero_slope_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        out[i] = x0;
    }
}

CLONES static void with_zero_slope_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        out[i] = x0;
    }
}

CLONES static void with_zero_slope_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        out[i] = x0;
    }
}

CLONES static void with_zero_slope_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        out[i] = x0;
    }
}

CLONES static void add_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = x0 + x1;
        out[i] = t0;
    }
}

CLONES static void add_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = x0 + x1;
        out[i] = t0;
    }
}

CLONES static void add_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 + x1;
        out[i] = t0;
    }
}

CLONES static void add_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 + x1;
        out[i] = t0;
    }
}

CLONES static void add_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = x0 + x1;
        out[i] = t0;
    }
}

CLONES static void add_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = x0 + x1;
        out[i] = t0;
    }
}

CLONES static void sub_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = x0 - x1;
        out[i] = t0;
    }
}

CLONES static void sub_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = x0 - x1;
        out[i] = t0;
    }
}

CLONES static void sub_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 - x1;
        out[i] = t0;
    }
}

CLONES static void sub_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 - x1;
        out[i] = t0;
    }
}

CLONES static void sub_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = x0 - x1;
        out[i] = t0;
    }
}

CLONES static void sub_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = x0 - x1;
        out[i] = t0;
    }
}

CLONES static void mul_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = x0 * x1;
        out[i] = t0;
    }
}

CLONES static void mul_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = x0 * x1;
        out[i] = t0;
    }
}

CLONES static void mul_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 * x1;
        out[i] = t0;
    }
}

CLONES static void mul_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 * x1;
        out[i] = t0;
    }
}

CLONES static void mul_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = x0 * x1;
        out[i] = t0;
    }
}

CLONES static void mul_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = x0 * x1;
        out[i] = t0;
    }
}

CLONES static void div_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = x0 / x1;
        out[i] = t0;
    }
}

CLONES static void div_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = x0 / x1;
        out[i] = t0;
    }
}

CLONES static void div_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 / x1;
        out[i] = t0;
    }
}

CLONES static void div_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 / x1;
        out[i] = t0;
    }
}

CLONES static void div_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = x0 / x1;
        out[i] = t0;
    }
}

CLONES static void div_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = x0 / x1;
        out[i] = t0;
    }
}

CLONES static void maximum_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = maximum_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = maximum_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = maximum_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = maximum_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = maximum_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void maximum_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = maximum_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = minimum_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = minimum_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = minimum_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = minimum_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = minimum_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void minimum_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = minimum_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void copysign_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = copysign_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void copysign_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = copysign_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void copysign_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = copysign_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void copysign_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = copysign_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void copysign_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = copysign_f32(x0, x1);
        out[i] = t0;
    }
}

CLONES static void copysign_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = copysign_f64(x0, x1);
        out[i] = t0;
    }
}

CLONES static void eq_vv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vs_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_vs_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_sv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void eq_sv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 == x1;
        out[i] = t0;
    }
}

CLONES static void ne_vv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vs_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_vs_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_sv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void ne_sv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 != x1;
        out[i] = t0;
    }
}

CLONES static void lt_vv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vs_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_vs_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_sv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void lt_sv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 < x1;
        out[i] = t0;
    }
}

CLONES static void le_vv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vs_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_vs_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_sv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void le_sv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 <= x1;
        out[i] = t0;
    }
}

CLONES static void gt_vv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vs_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_vs_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_sv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void gt_sv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 > x1;
        out[i] = t0;
    }
}

CLONES static void ge_vv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vs_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_vs_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_sv_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void ge_sv_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 >= x1;
        out[i] = t0;
    }
}

CLONES static void logical_not_v_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 == 0;
        out[i] = t0;
    }
}

CLONES static void logical_not_v_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 == 0;
        out[i] = t0;
    }
}

CLONES static void isnan_v_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = isnan_f32(x0);
        out[i] = t0;
    }
}

CLONES static void isnan_v_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = isnan_f64(x0);
        out[i] = t0;
    }
}

CLONES static void isinf_v_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = isinf_f32(x0);
        out[i] = t0;
    }
}

CLONES static void isinf_v_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = isinf_f64(x0);
        out[i] = t0;
    }
}

CLONES static void isfinite_v_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = isfinite_f32(x0);
        out[i] = t0;
    }
}

CLONES static void isfinite_v_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = isfinite_f64(x0);
        out[i] = t0;
    }
}

CLONES static void signbit_v_f32(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = signbit_f32(x0);
        out[i] = t0;
    }
}

CLONES static void signbit_v_f64(const Pointwise *ctx, long begin, long end)
{
    uint8_t *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = signbit_f64(x0);
        out[i] = t0;
    }
}

CLONES static void neg_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = -x0;
        out[i] = t0;
    }
}

CLONES static void neg_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = -x0;
        out[i] = t0;
    }
}

CLONES static void abs_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = abs_f32(x0);
        out[i] = t0;
    }
}

CLONES static void abs_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = abs_f64(x0);
        out[i] = t0;
    }
}

CLONES static void sgn_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 == x0;
        const float t1 = sign_f32(x0);
        const float t2 = t0 ? t1 : 0.0f;
        out[i] = t2;
    }
}

CLONES static void sgn_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 == x0;
        const double t1 = sign_f64(x0);
        const double t2 = t0 ? t1 : 0.0;
        out[i] = t2;
    }
}

CLONES static void sign_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 == x0;
        const float t1 = sign_f32(x0);
        const float t2 = t0 ? t1 : 0.0f;
        out[i] = t2;
    }
}

CLONES static void sign_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 == x0;
        const double t1 = sign_f64(x0);
        const double t2 = t0 ? t1 : 0.0;
        out[i] = t2;
    }
}

CLONES static void square_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 * x0;
        out[i] = t0;
    }
}

CLONES static void square_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 * x0;
        out[i] = t0;
    }
}

CLONES static void reciprocal_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = 1.0f / x0;
        out[i] = t0;
    }
}

CLONES static void reciprocal_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = 1.0 / x0;
        out[i] = t0;
    }
}

CLONES static void exp_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = exp_f32(x0);
        out[i] = t0;
    }
}

CLONES static void exp_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = exp_f64(x0);
        out[i] = t0;
    }
}

CLONES static void expm1_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = expm1_f32(x0);
        out[i] = t0;
    }
}

CLONES static void expm1_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = expm1_f64(x0);
        out[i] = t0;
    }
}

CLONES static void log_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = log_f32(x0);
        out[i] = t0;
    }
}

CLONES static void log_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = log_f64(x0);
        out[i] = t0;
    }
}

CLONES static void log1p_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = log1p_f32(x0);
        out[i] = t0;
    }
}

CLONES static void log1p_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = log1p_f64(x0);
        out[i] = t0;
    }
}

CLONES static void sqrt_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = sqrt_f32(x0);
        out[i] = t0;
    }
}

CLONES static void sqrt_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = sqrt_f64(x0);
        out[i] = t0;
    }
}

CLONES static void rsqrt_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = rsqrt_f32(x0);
        out[i] = t0;
    }
}

CLONES static void rsqrt_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = rsqrt_f64(x0);
        out[i] = t0;
    }
}

CLONES static void tanh_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = tanh_f32(x0);
        out[i] = t0;
    }
}

CLONES static void tanh_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = tanh_f64(x0);
        out[i] = t0;
    }
}

CLONES static void erf_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = erf_f32(x0);
        out[i] = t0;
    }
}

CLONES static void erf_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = erf_f64(x0);
        out[i] = t0;
    }
}

CLONES static void floor_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = floor_f32(x0);
        out[i] = t0;
    }
}

CLONES static void floor_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = floor_f64(x0);
        out[i] = t0;
    }
}

CLONES static void ceil_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = ceil_f32(x0);
        out[i] = t0;
    }
}

CLONES static void ceil_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = ceil_f64(x0);
        out[i] = t0;
    }
}

CLONES static void round_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = round_f32(x0);
        out[i] = t0;
    }
}

CLONES static void round_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = round_f64(x0);
        out[i] = t0;
    }
}

CLONES static void trunc_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = trunc_f32(x0);
        out[i] = t0;
    }
}

CLONES static void trunc_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = trunc_f64(x0);
        out[i] = t0;
    }
}

CLONES static void frac_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = trunc_f32(x0);
        const float t1 = x0 - t0;
        out[i] = t1;
    }
}

CLONES static void frac_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = trunc_f64(x0);
        const double t1 = x0 - t0;
        out[i] = t1;
    }
}

CLONES static void sigmoid_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = -x0;
        const float t1 = exp_f32(t0);
        const float t2 = 1.0f + t1;
        const float t3 = 1.0f / t2;
        out[i] = t3;
    }
}

CLONES static void sigmoid_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = -x0;
        const double t1 = exp_f64(t0);
        const double t2 = 1.0 + t1;
        const double t3 = 1.0 / t2;
        out[i] = t3;
    }
}

CLONES static void relu_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = maximum_f32(x0, 0.0f);
        out[i] = t0;
    }
}

CLONES static void relu_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = maximum_f64(x0, 0.0);
        out[i] = t0;
    }
}

CLONES static void silu_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = -x0;
        const float t1 = exp_f32(t0);
        const float t2 = 1.0f + t1;
        const float t3 = x0 / t2;
        out[i] = t3;
    }
}

CLONES static void silu_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = -x0;
        const double t1 = exp_f64(t0);
        const double t2 = 1.0 + t1;
        const double t3 = x0 / t2;
        out[i] = t3;
    }
}

CLONES static void leaky_relu_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 > 0.0f;
        const float t1 = x0 * x1;
        const float t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void leaky_relu_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 > 0.0;
        const double t1 = x0 * x1;
        const double t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void hardtanh_vss_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    const float x2 = (float)ctx->number[2];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 > x1;
        const int t1 = x0 < x2;
        const int t2 = t0 & t1;
        const float t3 = maximum_f32(x0, x1);
        const float t4 = minimum_f32(t3, x2);
        const float t5 = t2 ? x0 : t4;
        out[i] = t5;
    }
}

CLONES static void hardtanh_vss_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    const double x2 = (double)ctx->number[2];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 > x1;
        const int t1 = x0 < x2;
        const int t2 = t0 & t1;
        const double t3 = maximum_f64(x0, x1);
        const double t4 = minimum_f64(t3, x2);
        const double t5 = t2 ? x0 : t4;
        out[i] = t5;
    }
}

CLONES static void softshrink_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = abs_f32(x0);
        const int t1 = t0 > x1;
        const int t2 = x0 < 0.0f;
        const float t3 = x0 + x1;
        const float t4 = x0 - x1;
        const float t5 = t2 ? t3 : t4;
        const float t6 = x0 * 0.0f;
        const float t7 = t1 ? t5 : t6;
        out[i] = t7;
    }
}

CLONES static void softshrink_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = abs_f64(x0);
        const int t1 = t0 > x1;
        const int t2 = x0 < 0.0;
        const double t3 = x0 + x1;
        const double t4 = x0 - x1;
        const double t5 = t2 ? t3 : t4;
        const double t6 = x0 * 0.0;
        const double t7 = t1 ? t5 : t6;
        out[i] = t7;
    }
}

CLONES static void hardshrink_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = abs_f32(x0);
        const int t1 = t0 <= x1;
        const float t2 = t1 ? 0.0f : x0;
        out[i] = t2;
    }
}

CLONES static void hardshrink_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = abs_f64(x0);
        const int t1 = t0 <= x1;
        const double t2 = t1 ? 0.0 : x0;
        out[i] = t2;
    }
}

CLONES static void threshold_vss_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    const float x2 = (float)ctx->number[2];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 <= x1;
        const float t1 = t0 ? x2 : x0;
        out[i] = t1;
    }
}

CLONES static void threshold_vss_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    const double x2 = (double)ctx->number[2];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 <= x1;
        const double t1 = t0 ? x2 : x0;
        out[i] = t1;
    }
}

CLONES static void prelu_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 > 0.0f;
        const float t1 = x0 * x1;
        const float t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void prelu_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 > 0.0;
        const double t1 = x0 * x1;
        const double t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void prelu_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 > 0.0f;
        const float t1 = x0 * x1;
        const float t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void prelu_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 > 0.0;
        const double t1 = x0 * x1;
        const double t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void prelu_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 > 0.0f;
        const float t1 = x0 * x1;
        const float t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void prelu_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 > 0.0;
        const double t1 = x0 * x1;
        const double t2 = t0 ? x0 : t1;
        out[i] = t2;
    }
}

CLONES static void elu_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 > 0.0f;
        const float t1 = t0 ? 0.0f : x0;
        const float t2 = expm1_f32(t1);
        const float t3 = x1 * t2;
        const float t4 = t0 ? x0 : t3;
        out[i] = t4;
    }
}

CLONES static void elu_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 > 0.0;
        const double t1 = t0 ? 0.0 : x0;
        const double t2 = expm1_f64(t1);
        const double t3 = x1 * t2;
        const double t4 = t0 ? x0 : t3;
        out[i] = t4;
    }
}

CLONES static void celu_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 > 0.0f;
        const float t1 = t0 ? 0.0f : x0;
        const float t2 = t1 / x1;
        const float t3 = expm1_f32(t2);
        const float t4 = x1 * t3;
        const float t5 = t0 ? x0 : t4;
        out[i] = t5;
    }
}

CLONES static void celu_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 > 0.0;
        const double t1 = t0 ? 0.0 : x0;
        const double t2 = t1 / x1;
        const double t3 = expm1_f64(t2);
        const double t4 = x1 * t3;
        const double t5 = t0 ? x0 : t4;
        out[i] = t5;
    }
}

CLONES static void hardswish_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 + 3.0f;
        const float t1 = maximum_f32(t0, 0.0f);
        const float t2 = minimum_f32(t1, 6.0f);
        const float t3 = x0 * t2;
        const float t4 = t3 / 6.0f;
        out[i] = t4;
    }
}

CLONES static void hardswish_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 + 3.0;
        const double t1 = maximum_f64(t0, 0.0);
        const double t2 = minimum_f64(t1, 6.0);
        const double t3 = x0 * t2;
        const double t4 = t3 / 6.0;
        out[i] = t4;
    }
}

CLONES static void hardsigmoid_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 + 3.0f;
        const float t1 = maximum_f32(t0, 0.0f);
        const float t2 = minimum_f32(t1, 6.0f);
        const float t3 = t2 / 6.0f;
        out[i] = t3;
    }
}

CLONES static void hardsigmoid_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 + 3.0;
        const double t1 = maximum_f64(t0, 0.0);
        const double t2 = minimum_f64(t1, 6.0);
        const double t3 = t2 / 6.0;
        out[i] = t3;
    }
}

CLONES static void mish_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = minimum_f32(x0, 20.0f);
        const float t1 = exp_f32(t0);
        const float t2 = log1p_f32(t1);
        const float t3 = tanh_f32(t2);
        const float t4 = x0 * t3;
        out[i] = t4;
    }
}

CLONES static void mish_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = minimum_f64(x0, 20.0);
        const double t1 = exp_f64(t0);
        const double t2 = log1p_f64(t1);
        const double t3 = tanh_f64(t2);
        const double t4 = x0 * t3;
        out[i] = t4;
    }
}

CLONES static void softplus_vss_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    const float x2 = (float)ctx->number[2];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 * x1;
        const int t1 = t0 > x2;
        const float t2 = minimum_f32(t0, x2);
        const float t3 = exp_f32(t2);
        const float t4 = log1p_f32(t3);
        const float t5 = t4 / x1;
        const float t6 = t1 ? x0 : t5;
        out[i] = t6;
    }
}

CLONES static void softplus_vss_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    const double x2 = (double)ctx->number[2];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 * x1;
        const int t1 = t0 > x2;
        const double t2 = minimum_f64(t0, x2);
        const double t3 = exp_f64(t2);
        const double t4 = log1p_f64(t3);
        const double t5 = t4 / x1;
        const double t6 = t1 ? x0 : t5;
        out[i] = t6;
    }
}

CLONES static void log_sigmoid_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = minimum_f32(x0, 0.0f);
        const float t1 = abs_f32(x0);
        const float t2 = -t1;
        const float t3 = exp_f32(t2);
        const float t4 = log1p_f32(t3);
        const float t5 = t0 - t4;
        out[i] = t5;
    }
}

CLONES static void log_sigmoid_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = minimum_f64(x0, 0.0);
        const double t1 = abs_f64(x0);
        const double t2 = -t1;
        const double t3 = exp_f64(t2);
        const double t4 = log1p_f64(t3);
        const double t5 = t0 - t4;
        out[i] = t5;
    }
}

CLONES static void gelu_erf_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = 0.5f * x0;
        const float t1 = x0 * 0.7071067811865476f;
        const float t2 = erf_f32(t1);
        const float t3 = 1.0f + t2;
        const float t4 = t0 * t3;
        out[i] = t4;
    }
}

CLONES static void gelu_erf_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = 0.5 * x0;
        const double t1 = x0 * 0.7071067811865476;
        const double t2 = erf_f64(t1);
        const double t3 = 1.0 + t2;
        const double t4 = t0 * t3;
        out[i] = t4;
    }
}

CLONES static void gelu_tanh_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = x0 * x0;
        const float t1 = t0 * x0;
        const float t2 = t1 * 0.044715f;
        const float t3 = x0 + t2;
        const float t4 = t3 * 1.5957691216057308f;
        const float t5 = -t4;
        const float t6 = exp_f32(t5);
        const float t7 = 1.0f + t6;
        const float t8 = x0 / t7;
        out[i] = t8;
    }
}

CLONES static void gelu_tanh_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = x0 * x0;
        const double t1 = t0 * x0;
        const double t2 = t1 * 0.044715;
        const double t3 = x0 + t2;
        const double t4 = t3 * 1.5957691216057308;
        const double t5 = -t4;
        const double t6 = exp_f64(t5);
        const double t7 = 1.0 + t6;
        const double t8 = x0 / t7;
        out[i] = t8;
    }
}

CLONES static void fmax_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const float t2 = maximum_f32(x1, x0);
        const float t3 = t1 ? x0 : t2;
        const float t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmax_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const double t2 = maximum_f64(x1, x0);
        const double t3 = t1 ? x0 : t2;
        const double t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmax_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const float t2 = maximum_f32(x1, x0);
        const float t3 = t1 ? x0 : t2;
        const float t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmax_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const double t2 = maximum_f64(x1, x0);
        const double t3 = t1 ? x0 : t2;
        const double t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmax_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const float t2 = maximum_f32(x1, x0);
        const float t3 = t1 ? x0 : t2;
        const float t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmax_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const double t2 = maximum_f64(x1, x0);
        const double t3 = t1 ? x0 : t2;
        const double t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmin_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const float t2 = minimum_f32(x1, x0);
        const float t3 = t1 ? x0 : t2;
        const float t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmin_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const double t2 = minimum_f64(x1, x0);
        const double t3 = t1 ? x0 : t2;
        const double t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmin_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const float t2 = minimum_f32(x1, x0);
        const float t3 = t1 ? x0 : t2;
        const float t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmin_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const double t2 = minimum_f64(x1, x0);
        const double t3 = t1 ? x0 : t2;
        const double t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmin_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const float t2 = minimum_f32(x1, x0);
        const float t3 = t1 ? x0 : t2;
        const float t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void fmin_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 != x0;
        const int t1 = x1 != x1;
        const double t2 = minimum_f64(x1, x0);
        const double t3 = t1 ? x0 : t2;
        const double t4 = t0 ? x1 : t3;
        out[i] = t4;
    }
}

CLONES static void logaddexp_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float t0 = maximum_f32(x0, x1);
        const int t1 = x0 == x1;
        const float t2 = x0 - x1;
        const float t3 = abs_f32(t2);
        const float t4 = -t3;
        const float t5 = t1 ? 0.0f : t4;
        const float t6 = exp_f32(t5);
        const float t7 = log1p_f32(t6);
        const float t8 = t7 / 1.0f;
        const float t9 = t0 + t8;
        out[i] = t9;
    }
}

CLONES static void logaddexp_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const double t0 = maximum_f64(x0, x1);
        const int t1 = x0 == x1;
        const double t2 = x0 - x1;
        const double t3 = abs_f64(t2);
        const double t4 = -t3;
        const double t5 = t1 ? 0.0 : t4;
        const double t6 = exp_f64(t5);
        const double t7 = log1p_f64(t6);
        const double t8 = t7 / 1.0;
        const double t9 = t0 + t8;
        out[i] = t9;
    }
}

CLONES static void logaddexp_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float t0 = maximum_f32(x0, x1);
        const int t1 = x0 == x1;
        const float t2 = x0 - x1;
        const float t3 = abs_f32(t2);
        const float t4 = -t3;
        const float t5 = t1 ? 0.0f : t4;
        const float t6 = exp_f32(t5);
        const float t7 = log1p_f32(t6);
        const float t8 = t7 / 1.0f;
        const float t9 = t0 + t8;
        out[i] = t9;
    }
}

CLONES static void logaddexp_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double t0 = maximum_f64(x0, x1);
        const int t1 = x0 == x1;
        const double t2 = x0 - x1;
        const double t3 = abs_f64(t2);
        const double t4 = -t3;
        const double t5 = t1 ? 0.0 : t4;
        const double t6 = exp_f64(t5);
        const double t7 = log1p_f64(t6);
        const double t8 = t7 / 1.0;
        const double t9 = t0 + t8;
        out[i] = t9;
    }
}

CLONES static void logaddexp_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const float t0 = maximum_f32(x0, x1);
        const int t1 = x0 == x1;
        const float t2 = x0 - x1;
        const float t3 = abs_f32(t2);
        const float t4 = -t3;
        const float t5 = t1 ? 0.0f : t4;
        const float t6 = exp_f32(t5);
        const float t7 = log1p_f32(t6);
        const float t8 = t7 / 1.0f;
        const float t9 = t0 + t8;
        out[i] = t9;
    }
}

CLONES static void logaddexp_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const double t0 = maximum_f64(x0, x1);
        const int t1 = x0 == x1;
        const double t2 = x0 - x1;
        const double t3 = abs_f64(t2);
        const double t4 = -t3;
        const double t5 = t1 ? 0.0 : t4;
        const double t6 = exp_f64(t5);
        const double t7 = log1p_f64(t6);
        const double t8 = t7 / 1.0;
        const double t9 = t0 + t8;
        out[i] = t9;
    }
}

CLONES static void xlogy_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0f;
        const float t2 = log_f32(x1);
        const float t3 = x0 * t2;
        const float t4 = t1 ? 0.0f : t3;
        const float t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlogy_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0;
        const double t2 = log_f64(x1);
        const double t3 = x0 * t2;
        const double t4 = t1 ? 0.0 : t3;
        const double t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlogy_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0f;
        const float t2 = log_f32(x1);
        const float t3 = x0 * t2;
        const float t4 = t1 ? 0.0f : t3;
        const float t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlogy_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0;
        const double t2 = log_f64(x1);
        const double t3 = x0 * t2;
        const double t4 = t1 ? 0.0 : t3;
        const double t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlogy_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0f;
        const float t2 = log_f32(x1);
        const float t3 = x0 * t2;
        const float t4 = t1 ? 0.0f : t3;
        const float t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlogy_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0;
        const double t2 = log_f64(x1);
        const double t3 = x0 * t2;
        const double t4 = t1 ? 0.0 : t3;
        const double t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlog1py_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0f;
        const float t2 = log1p_f32(x1);
        const float t3 = x0 * t2;
        const float t4 = t1 ? 0.0f : t3;
        const float t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlog1py_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0;
        const double t2 = log1p_f64(x1);
        const double t3 = x0 * t2;
        const double t4 = t1 ? 0.0 : t3;
        const double t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlog1py_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0f;
        const float t2 = log1p_f32(x1);
        const float t3 = x0 * t2;
        const float t4 = t1 ? 0.0f : t3;
        const float t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlog1py_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0;
        const double t2 = log1p_f64(x1);
        const double t3 = x0 * t2;
        const double t4 = t1 ? 0.0 : t3;
        const double t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlog1py_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0f;
        const float t2 = log1p_f32(x1);
        const float t3 = x0 * t2;
        const float t4 = t1 ? 0.0f : t3;
        const float t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void xlog1py_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x1 != x1;
        const int t1 = x0 == 0.0;
        const double t2 = log1p_f64(x1);
        const double t3 = x0 * t2;
        const double t4 = t1 ? 0.0 : t3;
        const double t5 = t0 ? x1 : t4;
        out[i] = t5;
    }
}

CLONES static void heaviside_vv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const int t0 = x0 == 0.0f;
        const int t1 = x0 > 0.0f;
        const float t2 = t1 ? 1.0f : 0.0f;
        const float t3 = t0 ? x1 : t2;
        out[i] = t3;
    }
}

CLONES static void heaviside_vv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const double x1 = p1[i];
        const int t0 = x0 == 0.0;
        const int t1 = x0 > 0.0;
        const double t2 = t1 ? 1.0 : 0.0;
        const double t3 = t0 ? x1 : t2;
        out[i] = t3;
    }
}

CLONES static void heaviside_vs_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    const float x1 = (float)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 == 0.0f;
        const int t1 = x0 > 0.0f;
        const float t2 = t1 ? 1.0f : 0.0f;
        const float t3 = t0 ? x1 : t2;
        out[i] = t3;
    }
}

CLONES static void heaviside_vs_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    const double x1 = (double)ctx->number[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 == 0.0;
        const int t1 = x0 > 0.0;
        const double t2 = t1 ? 1.0 : 0.0;
        const double t3 = t0 ? x1 : t2;
        out[i] = t3;
    }
}

CLONES static void heaviside_sv_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float x0 = (float)ctx->number[0];
    const float *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x1 = p1[i];
        const int t0 = x0 == 0.0f;
        const int t1 = x0 > 0.0f;
        const float t2 = t1 ? 1.0f : 0.0f;
        const float t3 = t0 ? x1 : t2;
        out[i] = t3;
    }
}

CLONES static void heaviside_sv_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double x0 = (double)ctx->number[0];
    const double *p1 = ctx->in[1];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x1 = p1[i];
        const int t0 = x0 == 0.0;
        const int t1 = x0 > 0.0;
        const double t2 = t1 ? 1.0 : 0.0;
        const double t3 = t0 ? x1 : t2;
        out[i] = t3;
    }
}

CLONES static void special_entr_v_f32(const Pointwise *ctx, long begin, long end)
{
    float *out = ctx->out;
    const float *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const float x0 = p0[i];
        const int t0 = x0 != x0;
        const int t1 = x0 > 0.0f;
        const float t2 = -x0;
        const float t3 = log_f32(x0);
        const float t4 = t2 * t3;
        const int t5 = x0 == 0.0f;
        const float t6 = t5 ? 0.0f : (-INFINITY);
        const float t7 = t1 ? t4 : t6;
        const float t8 = t0 ? x0 : t7;
        out[i] = t8;
    }
}

CLONES static void special_entr_v_f64(const Pointwise *ctx, long begin, long end)
{
    double *out = ctx->out;
    const double *p0 = ctx->in[0];
    LOOP_APART
    for (long i = begin; i < end; i++) {
        const double x0 = p0[i];
        const int t0 = x0 != x0;
        const int t1 = x0 > 0.0;
        const double t2 = -x0;
        const double t3 = log_f64(x0);
        const double t4 = t2 * t3;
        const int t5 = x0 == 0.0;
        const double t6 = t5 ? 0.0 : (-INFINITY);
        const double t7 = t1 ? t4 : t6;
        const double t8 = t0 ? x0 : t7;
        out[i] = t8;
    }
}

static const PointwiseOp pointwise_ops[] = {
    {"with_zero_slope", 2, 0, {[3][0] = with_zero_slope_vv_f32, [3][1] = with_zero_slope_vv_f64, [1][0] = with_zero_slope_vs_f32, [1][1] = with_zero_slope_vs_f64, [2][0] = with_zero_slope_sv_f32, [2][1] = with_zero_slope_sv_f64}},
    {"add", 2, 0, {[3][0] = add_vv_f32, [3][1] = add_vv_f64, [1][0] = add_vs_f32, [1][1] = add_vs_f64, [2][0] = add_sv_f32, [2][1] = add_sv_f64}},
    {"sub", 2, 0, {[3][0] = sub_vv_f32, [3][1] = sub_vv_f64, [1][0] = sub_vs_f32, [1][1] = sub_vs_f64, [2][0] = sub_sv_f32, [2][1] = sub_sv_f64}},
    {"mul", 2, 0, {[3][0] = mul_vv_f32, [3][1] = mul_vv_f64, [1][0] = mul_vs_f32, [1][1] = mul_vs_f64, [2][0] = mul_sv_f32, [2][1] = mul_sv_f64}},
    {"div", 2, 0, {[3][0] = div_vv_f32, [3][1] = div_vv_f64, [1][0] = div_vs_f32, [1][1] = div_vs_f64, [2][0] = div_sv_f32, [2][1] = div_sv_f64}},
    {"maximum", 2, 0, {[3][0] = maximum_vv_f32, [3][1] = maximum_vv_f64, [1][0] = maximum_vs_f32, [1][1] = maximum_vs_f64, [2][0] = maximum_sv_f32, [2][1] = maximum_sv_f64}},
    {"minimum", 2, 0, {[3][0] = minimum_vv_f32, [3][1] = minimum_vv_f64, [1][0] = minimum_vs_f32, [1][1] = minimum_vs_f64, [2][0] = minimum_sv_f32, [2][1] = minimum_sv_f64}},
    {"copysign", 2, 0, {[3][0] = copysign_vv_f32, [3][1] = copysign_vv_f64, [1][0] = copysign_vs_f32, [1][1] = copysign_vs_f64, [2][0] = copysign_sv_f32, [2][1] = copysign_sv_f64}},
    {"eq", 2, 1, {[3][0] = eq_vv_f32, [3][1] = eq_vv_f64, [1][0] = eq_vs_f32, [1][1] = eq_vs_f64, [2][0] = eq_sv_f32, [2][1] = eq_sv_f64}},
    {"ne", 2, 1, {[3][0] = ne_vv_f32, [3][1] = ne_vv_f64, [1][0] = ne_vs_f32, [1][1] = ne_vs_f64, [2][0] = ne_sv_f32, [2][1] = ne_sv_f64}},
    {"lt", 2, 1, {[3][0] = lt_vv_f32, [3][1] = lt_vv_f64, [1][0] = lt_vs_f32, [1][1] = lt_vs_f64, [2][0] = lt_sv_f32, [2][1] = lt_sv_f64}},
    {"le", 2, 1, {[3][0] = le_vv_f32, [3][1] = le_vv_f64, [1][0] = le_vs_f32, [1][1] = le_vs_f64, [2][0] = le_sv_f32, [2][1] = le_sv_f64}},
    {"gt", 2, 1, {[3][0] = gt_vv_f32, [3][1] = gt_vv_f64, [1][0] = gt_vs_f32, [1][1] = gt_vs_f64, [2][0] = gt_sv_f32, [2][1] = gt_sv_f64}},
    {"ge", 2, 1, {[3][0] = ge_vv_f32, [3][1] = ge_vv_f64, [1][0] = ge_vs_f32, [1][1] = ge_vs_f64, [2][0] = ge_sv_f32, [2][1] = ge_sv_f64}},
    {"logical_not", 1, 1, {[1][0] = logical_not_v_f32, [1][1] = logical_not_v_f64}},
    {"isnan", 1, 1, {[1][0] = isnan_v_f32, [1][1] = isnan_v_f64}},
    {"isinf", 1, 1, {[1][0] = isinf_v_f32, [1][1] = isinf_v_f64}},
    {"isfinite", 1, 1, {[1][0] = isfinite_v_f32, [1][1] = isfinite_v_f64}},
    {"signbit", 1, 1, {[1][0] = signbit_v_f32, [1][1] = signbit_v_f64}},
    {"neg", 1, 0, {[1][0] = neg_v_f32, [1][1] = neg_v_f64}},
    {"abs", 1, 0, {[1][0] = abs_v_f32, [1][1] = abs_v_f64}},
    {"sgn", 1, 0, {[1][0] = sgn_v_f32, [1][1] = sgn_v_f64}},
    {"sign", 1, 0, {[1][0] = sign_v_f32, [1][1] = sign_v_f64}},
    {"square", 1, 0, {[1][0] = square_v_f32, [1][1] = square_v_f64}},
    {"reciprocal", 1, 0, {[1][0] = reciprocal_v_f32, [1][1] = reciprocal_v_f64}},
    {"exp", 1, 0, {[1][0] = exp_v_f32, [1][1] = exp_v_f64}},
    {"expm1", 1, 0, {[1][0] = expm1_v_f32, [1][1] = expm1_v_f64}},
    {"log", 1, 0, {[1][0] = log_v_f32, [1][1] = log_v_f64}},
    {"log1p", 1, 0, {[1][0] = log1p_v_f32, [1][1] = log1p_v_f64}},
    {"sqrt", 1, 0, {[1][0] = sqrt_v_f32, [1][1] = sqrt_v_f64}},
    {"rsqrt", 1, 0, {[1][0] = rsqrt_v_f32, [1][1] = rsqrt_v_f64}},
    {"tanh", 1, 0, {[1][0] = tanh_v_f32, [1][1] = tanh_v_f64}},
    {"erf", 1, 0, {[1][0] = erf_v_f32, [1][1] = erf_v_f64}},
    {"floor", 1, 0, {[1][0] = floor_v_f32, [1][1] = floor_v_f64}},
    {"ceil", 1, 0, {[1][0] = ceil_v_f32, [1][1] = ceil_v_f64}},
    {"round", 1, 0, {[1][0] = round_v_f32, [1][1] = round_v_f64}},
    {"trunc", 1, 0, {[1][0] = trunc_v_f32, [1][1] = trunc_v_f64}},
    {"frac", 1, 0, {[1][0] = frac_v_f32, [1][1] = frac_v_f64}},
    {"sigmoid", 1, 0, {[1][0] = sigmoid_v_f32, [1][1] = sigmoid_v_f64}},
    {"relu", 1, 0, {[1][0] = relu_v_f32, [1][1] = relu_v_f64}},
    {"silu", 1, 0, {[1][0] = silu_v_f32, [1][1] = silu_v_f64}},
    {"leaky_relu", 2, 0, {[1][0] = leaky_relu_vs_f32, [1][1] = leaky_relu_vs_f64}},
    {"hardtanh", 3, 0, {[1][0] = hardtanh_vss_f32, [1][1] = hardtanh_vss_f64}},
    {"softshrink", 2, 0, {[1][0] = softshrink_vs_f32, [1][1] = softshrink_vs_f64}},
    {"hardshrink", 2, 0, {[1][0] = hardshrink_vs_f32, [1][1] = hardshrink_vs_f64}},
    {"threshold", 3, 0, {[1][0] = threshold_vss_f32, [1][1] = threshold_vss_f64}},
    {"prelu", 2, 0, {[3][0] = prelu_vv_f32, [3][1] = prelu_vv_f64, [1][0] = prelu_vs_f32, [1][1] = prelu_vs_f64, [2][0] = prelu_sv_f32, [2][1] = prelu_sv_f64}},
    {"elu", 2, 0, {[1][0] = elu_vs_f32, [1][1] = elu_vs_f64}},
    {"celu", 2, 0, {[1][0] = celu_vs_f32, [1][1] = celu_vs_f64}},
    {"hardswish", 1, 0, {[1][0] = hardswish_v_f32, [1][1] = hardswish_v_f64}},
    {"hardsigmoid", 1, 0, {[1][0] = hardsigmoid_v_f32, [1][1] = hardsigmoid_v_f64}},
    {"mish", 1, 0, {[1][0] = mish_v_f32, [1][1] = mish_v_f64}},
    {"softplus", 3, 0, {[1][0] = softplus_vss_f32, [1][1] = softplus_vss_f64}},
    {"log_sigmoid", 1, 0, {[1][0] = log_sigmoid_v_f32, [1][1] = log_sigmoid_v_f64}},
    {"gelu_erf", 1, 0, {[1][0] = gelu_erf_v_f32, [1][1] = gelu_erf_v_f64}},
    {"gelu_tanh", 1, 0, {[1][0] = gelu_tanh_v_f32, [1][1] = gelu_tanh_v_f64}},
    {"fmax", 2, 0, {[3][0] = fmax_vv_f32, [3][1] = fmax_vv_f64, [1][0] = fmax_vs_f32, [1][1] = fmax_vs_f64, [2][0] = fmax_sv_f32, [2][1] = fmax_sv_f64}},
    {"fmin", 2, 0, {[3][0] = fmin_vv_f32, [3][1] = fmin_vv_f64, [1][0] = fmin_vs_f32, [1][1] = fmin_vs_f64, [2][0] = fmin_sv_f32, [2][1] = fmin_sv_f64}},
    {"logaddexp", 2, 0, {[3][0] = logaddexp_vv_f32, [3][1] = logaddexp_vv_f64, [1][0] = logaddexp_vs_f32, [1][1] = logaddexp_vs_f64, [2][0] = logaddexp_sv_f32, [2][1] = logaddexp_sv_f64}},
    {"xlogy", 2, 0, {[3][0] = xlogy_vv_f32, [3][1] = xlogy_vv_f64, [1][0] = xlogy_vs_f32, [1][1] = xlogy_vs_f64, [2][0] = xlogy_sv_f32, [2][1] = xlogy_sv_f64}},
    {"xlog1py", 2, 0, {[3][0] = xlog1py_vv_f32, [3][1] = xlog1py_vv_f64, [1][0] = xlog1py_vs_f32, [1][1] = xlog1py_vs_f64, [2][0] = xlog1py_sv_f32, [2][1] = xlog1py_sv_f64}},
    {"heaviside", 2, 0, {[3][0] = heaviside_vv_f32, [3][1] = heaviside_vv_f64, [1][0] = heaviside_vs_f32, [1][1] = heaviside_vs_f64, [2][0] = heaviside_sv_f32, [2][1] = heaviside_sv_f64}},
    {"special_entr", 1, 0, {[1][0] = special_entr_v_f32, [1][1] = special_entr_v_f64}},
};
