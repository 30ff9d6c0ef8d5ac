/* Scaled dot-product attention and its gradient, by blocks of rows of the query. The scores of a block against all keys fit the
 * nearest cache; they become weights and are multiplied with the values before the next block begins. The forward keeps only the
 * logarithm of each row's normaliser, from which the gradient recomputes the weights (after T. Dao et al., arXiv:2205.14135, with
 * blocks in one of the two directions). The gradient also draws the random bits of dropout again. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"
#include "kernels/philox.h"

enum { BLOCK_BYTES = 256 << 10, MOST_ROWS = 128, LEAST_ROWS = 8, LANES = 16 };

/* Matrices of one of the operands: the last dim is contiguous, rows lie `pitch` apart, leading dims have their strides. */
typedef struct {
    const char *data;
    long pitch;
    int64_t strides[EAGER_MAX_NDIM];
} Matrices;

typedef struct {
    int lead; /* leading dims of the result */
    int64_t sizes[EAGER_MAX_NDIM];
    long count, t, s, d, e; /* matrices; rows of q, rows of k, columns of q, columns of v */
    int dtype, itemsize;    /* as GemmCall has it */
    bool causal;
    double scale;
    Matrices q, k, v, g, y;      /* y: the result, or for the gradient the result of the forward */
    const char *mask;
    int mask_kind;               /* 0 none, 1 bool, 2 added */
    int64_t mask_strides[EAGER_MAX_NDIM], mask_row, mask_column;
    bool drops;                  /* dropout of the weights, by the counters offset + row-major position in (matrix, row, column) */
    float dropout_p;
    double share;                /* the factor of a weight that dropout keeps */
    uint64_t seed, offset;
    char *out, *lse;             /* memory of y in the forward; the logarithms, a result or given to the gradient: dense */
    char *gq, *gk, *gv;
    long rows, blocks;           /* of a block; blocks of one matrix */
} Attention;

static int64_t place_of(const Attention *a, const int64_t *strides, long index)
{
    int64_t at = 0;
    for (int i = a->lead - 1; i >= 0; i--) {
        at += index % a->sizes[i] * strides[i];
        index /= (long)a->sizes[i];
    }
    return at;
}

/* Bytes from the first element to a row of the matrix `index`. */
static int64_t row_of(const Attention *a, const Matrices *m, long index, long row)
{
    return (place_of(a, m->strides, index) + row * m->pitch) * a->itemsize;
}

static const void *matrix_of(const Attention *a, const Matrices *m, long index, long row) { return m->data + row_of(a, m, index, row); }

static void product(const Attention *a, bool ta, bool tb, long m, long n, long k, double alpha, const void *x, long ldx, const void *y,
                    long ldy, double beta, void *out, long ldo)
{
    const GemmCall call = {.dtype = a->dtype, .trans_a = ta, .trans_b = tb, .batch = 1, .m = m, .n = n, .k = k, .lda = ldx, .ldb = ldy,
                           .ldc = ldo, .alpha = alpha, .beta = beta, .a = x, .b = y, .c = out};
    blas_gemm(&g_runtime, &call, 1);
}

/* Number of columns that the rows before `end` attend to. */
static long seen_by(const Attention *a, long end) { return a->causal && end < a->s ? end : a->s; }

enum { DRAWN = 4 * PHILOX_CHUNK }; /* most weights of a row that are drawn at once */

/* Numbers in [0, 1) for the weights of columns at, ..., at + count - 1 of a row; a weight is kept if its number is at least
 * `dropout_p`. */
VM_INLINE void draw(const Attention *a, float *numbers, long index, long row, long at, int count)
{
    uint32_t words[DRAWN + PHILOX_CHUNK];
    const uint64_t first = (uint64_t)((index * a->t + row) * a->s + at), before = first % PHILOX_CHUNK;
    const int chunks = (int)((before + (uint64_t)count + PHILOX_CHUNK - 1) / PHILOX_CHUNK);
    philox_chunks(words, a->seed, a->offset + first / PHILOX_CHUNK * PHILOX_LANES, chunks);
    for (int j = 0; j < count; j++) numbers[j] = unit_f32(words[before + (uint64_t)j]);
}

#define ATTENTION(S, T)                                                                                     \
    /* Masks the scores of rows [r0, r1) against the first n keys. */                                       \
    CLONES static void mask_##S(const Attention *a, T *scores, long index, long r0, long r1, long n)        \
    {                                                                                                       \
        const int64_t at = a->mask_kind ? place_of(a, a->mask_strides, index) : 0;                          \
        const int64_t step = a->mask_column;                                                                \
        for (long r = r0; r < r1; r++) {                                                                    \
            T *restrict row = scores + (r - r0) * n;                                                        \
            if (a->mask_kind == 1) {                                                                        \
                const uint8_t *shown = (const uint8_t *)a->mask + at + r * a->mask_row;                     \
                for (long j = 0; j < n; j++) row[j] = shown[j * step] ? row[j] : (T)-INFINITY;              \
            }                                                                                               \
            else if (a->mask_kind == 2) {                                                                   \
                const T *added = (const T *)a->mask + at + r * a->mask_row;                                 \
                if (step == 1) for (long j = 0; j < n; j++) row[j] += added[j];                             \
                else for (long j = 0; j < n; j++) row[j] += added[j * step];                                \
            }                                                                                               \
            if (a->causal) for (long j = r + 1; j < n; j++) row[j] = (T)-INFINITY;                          \
        }                                                                                                   \
    }                                                                                                       \
    /* Scores become exponentials; in `total` their sums, and their logarithms with the maximum in `lse`. */ \
    CLONES static void weigh_##S(T *scores, long rows, long n, T *total, T *lse)                            \
    {                                                                                                       \
        for (long r = 0; r < rows; r++) {                                                                   \
            T *restrict row = scores + r * n;                                                               \
            T top = (T)-INFINITY, lanes[LANES];                                                             \
            long j = 0;                                                                                     \
            for (int l = 0; l < LANES; l++) lanes[l] = top;                                                 \
            for (; j + LANES <= n; j += LANES)                                                              \
                for (int l = 0; l < LANES; l++) lanes[l] = maximum_##S(lanes[l], row[j + l]);               \
            for (int l = 0; l < LANES; l++) top = maximum_##S(top, lanes[l]);                               \
            for (; j < n; j++) top = maximum_##S(top, row[j]);                                              \
            if (top == (T)-INFINITY) top = 0;                                                               \
            for (j = 0; j < n; j++) row[j] = exp_##S(row[j] - top);                                         \
            T sum = 0;                                                                                      \
            for (int l = 0; l < LANES; l++) lanes[l] = 0;                                                   \
            for (j = 0; j + LANES <= n; j += LANES)                                                         \
                for (int l = 0; l < LANES; l++) lanes[l] += row[j + l];                                     \
            for (int l = 0; l < LANES; l++) sum += lanes[l];                                                \
            for (; j < n; j++) sum += row[j];                                                               \
            total[r] = sum == 0 ? 1 : sum;                                                                  \
            lse[r] = log_##S(total[r]) + top;                                                               \
        }                                                                                                   \
    }                                                                                                       \
    /* Dropout of the weights of rows [r0, r1) for the first n keys, in place. */                           \
    CLONES static void drop_##S(const Attention *a, T *weights, long index, long r0, long r1, long n)       \
    {                                                                                                       \
        float numbers[DRAWN];                                                                               \
        const T share = (T)a->share;                                                                        \
        for (long r = r0; r < r1; r++)                                                                      \
            for (long at = 0; at < n; at += DRAWN) {                                                        \
                T *restrict row = weights + (r - r0) * n + at;                                              \
                const int count = n - at < DRAWN ? (int)(n - at) : DRAWN;                                   \
                draw(a, numbers, index, r, at, count);                                                      \
                for (int j = 0; j < count; j++) row[j] = numbers[j] >= a->dropout_p ? row[j] * share : 0;   \
            }                                                                                               \
    }                                                                                                       \
    CLONES static void divide_##S(T *y, long rows, long n, long pitch, const T *total)                      \
    {                                                                                                       \
        for (long r = 0; r < rows; r++) {                                                                   \
            const T share = 1 / total[r];                                                                   \
            for (long j = 0; j < n; j++) y[r * pitch + j] *= share;                                         \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: a block of rows of one matrix. */                                                          \
    static void forward_##S(void *context, long begin, long end)                                            \
    {                                                                                                       \
        const Attention *a = context;                                                                       \
        T *scores = threads_scratch(&g_runtime, 0, (a->rows * a->s + a->rows) * (long)sizeof(T)), *total = scores + a->rows * a->s; \
        for (long unit = begin; unit < end; unit++) {                                                       \
            const long index = unit / a->blocks, r0 = unit % a->blocks * a->rows;                           \
            const long r1 = r0 + a->rows < a->t ? r0 + a->rows : a->t, rows = r1 - r0, n = seen_by(a, r1);  \
            T *y = (T *)(a->out + row_of(a, &a->y, index, r0));                                             \
            product(a, false, true, rows, n, a->d, a->scale, matrix_of(a, &a->q, index, r0), a->q.pitch,    \
                    matrix_of(a, &a->k, index, 0), a->k.pitch, 0, scores, n);                               \
            mask_##S(a, scores, index, r0, r1, n);                                                          \
            weigh_##S(scores, rows, n, total, (T *)a->lse + index * a->t + r0);                             \
            if (a->drops) drop_##S(a, scores, index, r0, r1, n);                                            \
            product(a, false, false, rows, a->e, n, 1, scores, n, matrix_of(a, &a->v, index, 0), a->v.pitch, 0, y, a->y.pitch); \
            divide_##S(y, rows, a->e, a->y.pitch, total);                                                   \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void weights_##S(T *scores, long rows, long n, const T *lse)                              \
    {                                                                                                       \
        for (long r = 0; r < rows; r++)                                                                     \
            for (long j = 0; j < n; j++) scores[r * n + j] = exp_##S(scores[r * n + j] - lse[r]);           \
    }                                                                                                       \
    /* ds = p * (dropout(dp) - sum(g * y)) * scale, in place of dp; then p becomes dropout(p). Rows [r0, r1), the first n keys. */\
    CLONES static void cotangent_##S(const Attention *a, T *dp, T *p, long index, long r0, long r1, long n) \
    {                                                                                                       \
        float numbers[DRAWN];                                                                               \
        const T scale = (T)a->scale, share = (T)a->share;                                                   \
        const T *g = matrix_of(a, &a->g, index, r0), *y = matrix_of(a, &a->y, index, r0);                   \
        for (long r = 0; r < r1 - r0; r++) {                                                                \
            T delta = 0;                                                                                    \
            for (long j = 0; j < a->e; j++) delta += g[r * a->g.pitch + j] * y[r * a->y.pitch + j];         \
            T *restrict ds = dp + r * n, *restrict w = p + r * n;                                           \
            if (!a->drops) for (long j = 0; j < n; j++) ds[j] = (ds[j] - delta) * w[j] * scale;             \
            else for (long at = 0; at < n; at += DRAWN) {                                                   \
                const int count = n - at < DRAWN ? (int)(n - at) : DRAWN;                                   \
                draw(a, numbers, index, r0 + r, at, count);                                                 \
                for (int j = 0; j < count; j++) {                                                           \
                    const bool kept = numbers[j] >= a->dropout_p;                                           \
                    ds[at + j] = ((kept ? ds[at + j] * share : 0) - delta) * w[at + j] * scale;             \
                    w[at + j] = kept ? w[at + j] * share : 0;                                               \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: a matrix. */                                                                               \
    static void backward_##S(void *context, long begin, long end)                                           \
    {                                                                                                       \
        const Attention *a = context;                                                                       \
        T *p = threads_scratch(&g_runtime, 0, 2 * a->rows * a->s * (long)sizeof(T)), *ds = p + a->rows * a->s; \
        for (long index = begin; index < end; index++) {                                                    \
            T *gq = (T *)a->gq + index * a->t * a->d, *gk = (T *)a->gk + index * a->s * a->d, *gv = (T *)a->gv + index * a->s * a->e; \
            const void *k = matrix_of(a, &a->k, index, 0), *v = matrix_of(a, &a->v, index, 0);              \
            memset(gk, 0, (size_t)(a->s * a->d) * sizeof(T));                                               \
            memset(gv, 0, (size_t)(a->s * a->e) * sizeof(T));                                               \
            for (long r0 = 0; r0 < a->t; r0 += a->rows) {                                                   \
                const long r1 = r0 + a->rows < a->t ? r0 + a->rows : a->t, rows = r1 - r0, n = seen_by(a, r1); \
                const T *q = matrix_of(a, &a->q, index, r0), *g = matrix_of(a, &a->g, index, r0);           \
                product(a, false, true, rows, n, a->d, a->scale, q, a->q.pitch, k, a->k.pitch, 0, p, n);    \
                mask_##S(a, p, index, r0, r1, n);                                                           \
                weights_##S(p, rows, n, (const T *)a->lse + index * a->t + r0);                             \
                product(a, false, true, rows, n, a->e, 1, g, a->g.pitch, v, a->v.pitch, 0, ds, n);          \
                cotangent_##S(a, ds, p, index, r0, r1, n);                                                  \
                product(a, true, false, n, a->e, rows, 1, p, n, g, a->g.pitch, 1, gv, a->e);                \
                product(a, false, false, rows, a->d, n, 1, ds, n, k, a->k.pitch, 0, gq + r0 * a->d, a->d);  \
                product(a, true, false, n, a->d, rows, 1, ds, n, q, a->q.pitch, 1, gk, a->d);               \
            }                                                                                               \
        }                                                                                                   \
    }
ATTENTION(f32, float)
ATTENTION(f64, double)

/* ---- reading arguments ---- */

static void set_matrices(const Attention *a, const TensorObject *t, Matrices *m)
{
    const int n = tensor_ndim(t);
    m->data = t->data;
    m->pitch = tensor_sizes(t)[n - 2] == 1 ? (long)tensor_sizes(t)[n - 1] : (long)tensor_strides(t)[n - 2];
    memcpy(m->strides, tensor_strides(t), sizeof(int64_t) * (size_t)a->lead);
}

/* Whether BLAS can read the matrices of a tensor, or write them. */
static bool has_matrix_rows(const TensorObject *t)
{
    const int n = tensor_ndim(t);
    const int64_t *sizes = tensor_sizes(t), *strides = tensor_strides(t);
    return (strides[n - 1] == 1 || sizes[n - 1] == 1) && (strides[n - 2] >= sizes[n - 1] || sizes[n - 2] == 1);
}

/* A tensor of the leading dims, rows that BLAS can read, and the last dims; a row-major copy (in *held) where they are not. */
static bool read_matrices(const Attention *a, TensorObject *t, Matrices *m, PyObject **held)
{
    const int n = tensor_ndim(t);
    if (n != a->lead + 2 || memcmp(tensor_sizes(t), a->sizes, sizeof(int64_t) * (size_t)a->lead)) return false;
    if (!has_matrix_rows(t)) {
        if (!(*held = (PyObject *)as_row_major(t))) return false;
        t = (TensorObject *)*held;
    }
    set_matrices(a, t, m);
    return true;
}

static bool read_mask(Attention *a, PyObject *o)
{
    if (o == Py_None) return true;
    const TensorObject *t = cpu_tensor(o);
    if (!t || tensor_ndim(t) > a->lead + 2) return false;
    a->mask_kind = code_of(t) == EAGER_BOOL ? 1 : 2;
    if (a->mask_kind == 2 && code_of(t) != (a->dtype ? EAGER_FLOAT64 : EAGER_FLOAT32)) return false;
    a->mask = t->data;
    int64_t steps[EAGER_MAX_NDIM];
    const int missing = a->lead + 2 - tensor_ndim(t);
    for (int d = 0; d < a->lead + 2; d++) {
        const int64_t wanted = d < a->lead ? a->sizes[d] : d == a->lead ? a->t : a->s, have = d < missing ? 1 : tensor_sizes(t)[d - missing];
        if (have != wanted && have != 1) return false;
        steps[d] = have == 1 ? 0 : tensor_strides(t)[d - missing];
    }
    memcpy(a->mask_strides, steps, sizeof(int64_t) * (size_t)a->lead);
    a->mask_row = steps[a->lead];
    a->mask_column = steps[a->lead + 1];
    return true;
}

/* Reads the state and probability of dropout. */
static bool read_dropout(Attention *a, PyObject *state_given, PyObject *p_given)
{
    if (state_given == Py_None) return true;
    const TensorObject *state = cpu_tensor(state_given);
    double p;
    if (!state || code_of(state) != EAGER_INT64 || tensor_count(state) != 2 || !is_row_major(state) || !read_real(p_given, &p)) return false;
    const uint64_t *words = (const uint64_t *)state->data;
    a->drops = true;
    a->dropout_p = (float)p;
    a->share = p == 1 ? 0 : 1 / (1 - p);
    a->seed = words[0];
    a->offset = words[1];
    return true;
}

/* Reads q, k, v, mask, and the last parameters: causal, scale, state and probability of dropout. False for unsupported arguments;
 * the caller drops the copies in `held`. */
static bool read_attention(Attention *a, PyObject *const *q_k_v_mask, PyObject *const *last, PyObject **held)
{
    TensorObject *q = float_tensor(q_k_v_mask[0]), *k = float_tensor(q_k_v_mask[1]), *v = float_tensor(q_k_v_mask[2]);
    if (!blas_loaded() || !q || !k || !v || code_of(k) != code_of(q) || code_of(v) != code_of(q) || tensor_ndim(q) < 2) return false;
    if (tensor_ndim(k) != tensor_ndim(q) || tensor_ndim(v) != tensor_ndim(q)) return false;
    const int n = tensor_ndim(q);
    a->lead = n - 2;
    memcpy(a->sizes, tensor_sizes(q), sizeof(int64_t) * (size_t)a->lead);
    a->count = (long)count_elements(a->sizes, a->lead);
    a->t = (long)tensor_sizes(q)[n - 2];
    a->d = (long)tensor_sizes(q)[n - 1];
    a->s = (long)tensor_sizes(k)[n - 2];
    a->e = (long)tensor_sizes(v)[n - 1];
    a->dtype = code_of(q) == EAGER_FLOAT64;
    a->itemsize = a->dtype ? 8 : 4;
    a->causal = last[0] == Py_True;
    if (tensor_sizes(k)[n - 1] != a->d || tensor_sizes(v)[n - 2] != a->s || !read_real(last[1], &a->scale)) return false;
    if (!a->count || !a->t || !a->s || !a->d || !a->e || !read_mask(a, q_k_v_mask[3])) return false;
    if (!read_dropout(a, last[2], last[3])) return false;
    a->rows = BLOCK_BYTES / (a->s * a->itemsize) / 8 * 8;
    if (a->rows > MOST_ROWS) a->rows = MOST_ROWS;
    if (a->rows < LEAST_ROWS) a->rows = LEAST_ROWS;
    if (a->rows > a->t) a->rows = a->t;
    a->blocks = (a->t + a->rows - 1) / a->rows;
    return read_matrices(a, q, &a->q, &held[0]) && read_matrices(a, k, &a->k, &held[1]) && read_matrices(a, v, &a->v, &held[2]);
}

static void drop(PyObject **held, int count)
{
    for (int i = 0; i < count; i++) Py_XDECREF(held[i]);
}

static double work_of(const Attention *a) { return (double)a->count * (double)a->t * (double)a->s * (double)(a->d + a->e); }

static TensorObject *result(const Attention *a, long rows, long columns, Results *results)
{
    int64_t sizes[EAGER_MAX_NDIM];
    memcpy(sizes, a->sizes, sizeof(int64_t) * (size_t)a->lead);
    sizes[a->lead] = rows;
    sizes[a->lead + 1] = columns;
    return result_memory(results, a->dtype ? EAGER_FLOAT64 : EAGER_FLOAT32, a->lead + 2, sizes);
}

/* Whether the result has the memory layout of the query (`_strides` in eager/optable/attention.py). */
static bool has_layout_of_query(const Attention *a, PyObject *const *q_k_v)
{
    if (a->drops || a->lead != 2 || a->d != a->e) return false;
    for (int i = 0; i < 3; i++)
        if (tensor_strides((const TensorObject *)q_k_v[i])[3] != 1) return false;
    return true;
}

static TensorObject *result_like_query(const Attention *a, PyObject *const *q_k_v, Results *results)
{
    const TensorObject *q = (const TensorObject *)q_k_v[0];
    if (!has_layout_of_query(a, q_k_v)) return result(a, a->t, a->e, results);
    TensorObject *y = result_memory_like(results, q);
    return y && has_matrix_rows(y) ? y : NULL; /* an expanded query may order the dims in another way */
}

/* attention(q, k, v, mask, is_causal, scale, state, dropout_p): result, and the log of each row's normaliser */
bool kernel_attention(PyObject *const *args, Results *results)
{
    Attention a = {.lead = 0};
    PyObject *held[3] = {NULL};
    bool done = false;
    if (read_attention(&a, args, args + 4, held)) {
        TensorObject *y = result_like_query(&a, args, results), *lse = y ? result(&a, a.t, 1, results) : NULL;
        if (lse) {
            set_matrices(&a, y, &a.y);
            a.out = y->data;
            a.lse = lse->data;
            parallel(a.dtype ? forward_f64 : forward_f32, &a, a.count * a.blocks, 1, work_of(&a));
            done = true;
        }
    }
    drop(held, 3);
    return done;
}

/* Whether a tensor has the dtype of the call and the last dims of its result. */
static bool has_rows(const Attention *a, const TensorObject *t)
{
    return t && code_of(t) == (a->dtype ? EAGER_FLOAT64 : EAGER_FLOAT32) && tensor_ndim(t) == a->lead + 2 &&
           tensor_sizes(t)[a->lead] == a->t && tensor_sizes(t)[a->lead + 1] == a->e;
}

static bool is_dense(const Attention *a, PyObject *o, long rows, long columns, char **data)
{
    const TensorObject *t = float_tensor(o);
    if (!t || code_of(t) != (a->dtype ? EAGER_FLOAT64 : EAGER_FLOAT32) || !is_row_major(t)) return false;
    *data = t->data;
    return tensor_count(t) == (int64_t)a->count * rows * columns;
}

/* attention_backward(g, q, k, v, mask, y, lse, is_causal, scale, state, dropout_p): gradients of q, k and v */
bool kernel_attention_backward(PyObject *const *args, Results *results)
{
    Attention a = {.lead = 0};
    PyObject *held[5] = {NULL};
    bool done = false;
    TensorObject *g = float_tensor(args[0]), *y = float_tensor(args[5]);
    if (g && read_attention(&a, args + 1, args + 7, held) && has_rows(&a, g) && has_rows(&a, y) &&
        read_matrices(&a, g, &a.g, &held[3]) && read_matrices(&a, y, &a.y, &held[4]) && is_dense(&a, args[6], a.t, 1, &a.lse)) {
        TensorObject *gq = result(&a, a.t, a.d, results), *gk = gq ? result(&a, a.s, a.d, results) : NULL;
        TensorObject *gv = gk ? result(&a, a.s, a.e, results) : NULL;
        if (gv) {
            a.gq = gq->data;
            a.gk = gk->data;
            a.gv = gv->data;
            parallel(a.dtype ? backward_f64 : backward_f32, &a, a.count, 1, 3 * work_of(&a));
            done = true;
        }
    }
    drop(held, 5);
    return done;
}
