/* Draws of Philox 4x32-10, the counter-based generator of every random op.
 *
 * The draws equal the draws of eager.optable.random, the reference that other devices run. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "tensor/numpy_buffers.h"
#include "kernels/kernel.h"
#include "kernels/philox.h"

typedef struct {
    void *out;
    uint64_t seed, offset;
} Draw;

/* [0, 1) with 53 bits of two words. */
VM_INLINE double unit_f64(uint32_t a, uint32_t b) { return ((double)(a >> 5) * 0x1p26 + (double)(b >> 6)) * 0x1p-53; }

/* The cosine and the sine of 2 pi v, v in [0, 1): an eighth of a turn is left, then polynomials (Taylor, error below 1e-8). */
VM_INLINE void turn_f32(float v, float *cosine, float *sine)
{
    float q = rintf(v * 4.0f), r = (v - q * 0.25f) * 6.28318531f, z = r * r;
    int32_t quarter = (int32_t)q & 3;
    float c = ((((2.48015873e-5f * z - 0.00138888889f) * z + 0.0416666667f) * z - 0.5f) * z) + 1.0f;
    float s = ((((2.75573192e-6f * z - 0.000198412698f) * z + 0.00833333333f) * z - 0.166666667f) * z) * r + r;
    float x = quarter & 1 ? s : c, y = quarter & 1 ? c : s;
    *cosine = (quarter == 1) | (quarter == 2) ? -x : x;
    *sine = quarter >= 2 ? -y : y;
}

/* Defines NAME, which draws the elements begin, ..., end - 1 of type T and of WORDS words each, in groups of PHILOX_CHUNKS chunks.
 * DRAW(out, words, low, high) draws elements low, ..., high - 1 of a group; out: its first element. */
#define DRAWS(NAME, T, WORDS, DRAW)                                                                         \
    CLONES static void NAME(void *context, long begin, long end)                                            \
    {                                                                                                       \
        const Draw *draw = context;                                                                         \
        const long chunk = PHILOX_CHUNK / WORDS;                                                            \
        uint32_t words[PHILOX_WORDS];                                                                       \
        for (long at = begin / chunk * chunk; at < end; at += PHILOX_CHUNKS * chunk) {                      \
            const long low = begin > at ? begin - at : 0;                                                   \
            const long high = end - at < PHILOX_CHUNKS * chunk ? end - at : PHILOX_CHUNKS * chunk;          \
            philox_chunks(words, draw->seed, draw->offset + (uint64_t)(at / chunk * PHILOX_LANES), (int)((high + chunk - 1) / chunk)); \
            DRAW((T *)draw->out + at, words, low, high);                                                    \
        }                                                                                                   \
    }

VM_INLINE void uniforms_f32(float *out, const uint32_t *words, long low, long high)
{
    for (long i = low; i < high; i++) out[i] = unit_f32(words[i]);
}

/* The first `count` elements of chunks of two words, in order, and others up to the next multiple of 2 * PHILOX_LANES. */
VM_INLINE void units_f64(double *to, const uint32_t *words, long count)
{
    for (long chunk = 0; chunk < count; chunk += 2 * PHILOX_LANES)
        for (long i = chunk; i < chunk + 2 * PHILOX_LANES; i++) {
            const uint32_t *word = words + 2 * (i / PHILOX_LANES * PHILOX_LANES) + i % PHILOX_LANES;
            to[i] = unit_f64(word[0], word[PHILOX_LANES]);
        }
}

VM_INLINE void uniforms_f64(double *out, const uint32_t *words, long low, long high)
{
    double units[PHILOX_WORDS / 2];
    units_f64(units, words, high);
    memcpy(out + low, units + low, (size_t)(high - low) * sizeof(double));
}

VM_INLINE void normals_f32(float *out, const uint32_t *words, long low, long high)
{
    float z[PHILOX_WORDS];
    for (long pair = low / (2 * PHILOX_LANES) * (2 * PHILOX_LANES); pair < high; pair += 2 * PHILOX_LANES)
        for (long l = pair; l < pair + PHILOX_LANES; l++) {
            float cosine, sine;
            turn_f32(unit_f32(words[l + PHILOX_LANES]), &cosine, &sine);
            const float radius = sqrtf(-2.0f * log1p_f32(-unit_f32(words[l])));
            z[l] = radius * cosine;
            z[l + PHILOX_LANES] = radius * sine;
        }
    memcpy(out + low, z + low, (size_t)(high - low) * sizeof(float));
}

VM_INLINE void normals_f64(double *out, const uint32_t *words, long low, long high)
{
    double z[PHILOX_WORDS / 2];
    units_f64(z, words, high);
    for (long pair = low / (2 * PHILOX_LANES) * (2 * PHILOX_LANES); pair < high; pair += 2 * PHILOX_LANES)
        for (long l = pair; l < pair + PHILOX_LANES; l++) {
            const double radius = sqrt(-2.0 * log1p(-z[l])), angle = z[l + PHILOX_LANES] * 6.283185307179586;
            z[l] = radius * cos(angle);
            z[l + PHILOX_LANES] = radius * sin(angle);
        }
    memcpy(out + low, z + low, (size_t)(high - low) * sizeof(double));
}

DRAWS(uniform_f32, float, 1, uniforms_f32)
DRAWS(uniform_f64, double, 2, uniforms_f64)
DRAWS(normal_f32, float, 1, normals_f32)
DRAWS(normal_f64, double, 2, normals_f64)

/* [low, low + width) by the remainder of two words, as one number of 64 bits. */
typedef struct {
    Draw draw;
    int64_t low;
    uint64_t width;
    bool wide; /* int64 rather than int32 */
} IntegerDraw;

static void draw_integers(void *context, long begin, long end)
{
    const IntegerDraw *w = context;
    const long chunk = PHILOX_CHUNK / 2;
    uint32_t words[PHILOX_CHUNK];
    for (long at = begin / chunk * chunk; at < end; at += chunk) {
        philox_chunks(words, w->draw.seed, w->draw.offset + (uint64_t)(at / chunk * PHILOX_LANES), 1);
        for (long i = begin > at ? begin - at : 0; i < chunk && at + i < end; i++) {
            const uint32_t *word = words + i / PHILOX_LANES * 2 * PHILOX_LANES + i % PHILOX_LANES;
            const uint64_t drawn = word[0] | (uint64_t)word[PHILOX_LANES] << 32;
            const int64_t value = (int64_t)((uint64_t)w->low + drawn % w->width);
            if (w->wide) ((int64_t *)w->draw.out)[at + i] = value;
            else ((int32_t *)w->draw.out)[at + i] = (int32_t)value;
        }
    }
}

/* philox_fill(out, seed, offset, normal): fills a row-major float32 or float64 array; False for any other */
static PyObject *py_philox_fill(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4) return PyErr_Format(PyExc_TypeError, "philox_fill() takes out, seed, offset and normal");
    uint64_t seed = PyLong_AsUnsignedLongLongMask(args[1]), offset = PyLong_AsUnsignedLongLongMask(args[2]);
    if (PyErr_Occurred()) return NULL;
    Arrays a;
    int opened = arrays_open(&a, args, 1, 1);
    if (opened < 0) return NULL;
    if (!opened) Py_RETURN_FALSE;
    Draw draw = {a.data[0], seed, offset};
    bool normal = PyObject_IsTrue(args[3]) == 1;
    LoopFn fn = normal ? (a.is_double ? normal_f64 : normal_f32) : (a.is_double ? uniform_f64 : uniform_f32);
    parallel(fn, &draw, a.sizes[0], 4096, 8.0 * (double)a.sizes[0]);
    arrays_close(&a);
    Py_RETURN_TRUE;
}

/* A result of those sizes, to be drawn from a state; NULL without an exception where they are none. */
static TensorObject *result_of(PyObject *state_given, PyObject *size, int code, Draw *draw, Results *results)
{
    const TensorObject *state = cpu_tensor(state_given);
    int64_t sizes[EAGER_MAX_NDIM];
    const int ndim = read_ints(size, sizes, EAGER_MAX_NDIM);
    if (!state || code_of(state) != EAGER_INT64 || tensor_count(state) != 2 || !is_row_major(state) || ndim < 0) return NULL;
    for (int d = 0; d < ndim; d++)
        if (sizes[d] < 0) return NULL;
    TensorObject *out = result_memory(results, code, ndim, sizes);
    const uint64_t *words = (const uint64_t *)state->data;
    if (out) *draw = (Draw){out->data, words[0], words[1]};
    return out;
}

/* Draws of (state, size, dtype), as tensors of float32 and float64. */
static bool draw_floats(PyObject *const *args, LoopFn single, LoopFn twice, Results *results)
{
    Draw draw;
    const int code = code_of_dtype(args[2]);
    TensorObject *out = code == EAGER_FLOAT32 || code == EAGER_FLOAT64 ? result_of(args[0], args[1], code, &draw, results) : NULL;
    if (!out) return false;
    const long count = (long)tensor_count(out);
    parallel(code == EAGER_FLOAT64 ? twice : single, &draw, count, 4096, 8.0 * (double)count);
    return out != NULL;
}

bool kernel_philox_uniform(PyObject *const *args, Results *results) { return draw_floats(args, uniform_f32, uniform_f64, results); }
bool kernel_philox_normal(PyObject *const *args, Results *results) { return draw_floats(args, normal_f32, normal_f64, results); }

/* philox_randint(state, low, high, size, dtype) of int64 and int32 */
bool kernel_philox_randint(PyObject *const *args, Results *results)
{
    int64_t high;
    IntegerDraw w;
    const int code = args[4] == Py_None ? EAGER_INT64 : code_of_dtype(args[4]);
    if (!read_int(args[1], &w.low) || !read_int(args[2], &high) || high <= w.low) return false;
    if (code != EAGER_INT64 && (code != EAGER_INT32 || w.low < INT32_MIN || high > (int64_t)INT32_MAX + 1)) return false;
    w.width = (uint64_t)high - (uint64_t)w.low;
    w.wide = code == EAGER_INT64;
    TensorObject *out = result_of(args[0], args[3], code, &w.draw, results);
    if (out) parallel(draw_integers, &w, (long)tensor_count(out), 4096, 8.0 * (double)tensor_count(out));
    return out != NULL;
}

PyMethodDef philox_functions[] = {
    {"philox_fill", (PyCFunction)(void *)py_philox_fill, METH_FASTCALL, "philox_fill(out, seed, offset, normal) -> whether it could run"},
    {NULL, NULL, 0, NULL},
};
