/* A cuBLASLt that computes on the host, in the order of the calls. It suggests three algorithms: 0 needs no workspace, 1 needs 4096 bytes,
 * 2 needs operands at multiples of 16 bytes. It knows the layouts and attributes that the library documents, and nothing else. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT32 = 0, FLOAT64 = 1, FLOAT16 = 2, BFLOAT16 = 14 };
enum { INVALID = 7, NOT_SUPPORTED = 15, WORKSPACE = 4096 };

typedef struct { int compute, scale; int32_t transposes[2]; int32_t epilogue; void *bias; } Desc;
typedef struct { int type; int64_t rows, columns, pitch, step; int32_t batch; } Layout;
typedef struct { uint64_t most_bytes; uint32_t reductions, alignments[4]; } Preference;
typedef struct { uint64_t data[8]; } Algorithm;
typedef struct { Algorithm algorithm; size_t workspace_bytes; int status; float waves; int reserved[4]; } Suggestion;

static int n_products, n_live, next_status, last_compute;
static size_t last_workspace_bytes;
static void *last_stream, *last_workspace;
static uint32_t last_alignments[4], last_reductions;

int fake_products(void) { return n_products; }
int fake_live(void) { return n_live; }
int fake_compute(void) { return last_compute; }
int fake_alignment(int of) { return (int)last_alignments[of]; }
int fake_reductions(void) { return (int)last_reductions; }
long fake_workspace_bytes(void) { return (long)last_workspace_bytes; }
void *fake_workspace(void) { return last_workspace; }
void *fake_stream(void) { return last_stream; }
void fake_fail_next_product(int status) { next_status = status; }

int cublasLtCreate(void **handle) { *handle = (void *)1; return 0; }
size_t cublasLtGetVersion(void) { return 130000; }
const char *cublasLtGetStatusString(int status) { return status == 14 ? "an internal operation failed" : "the fake library refuses"; }

int cublasLtMatmulDescCreate(void **desc, int compute, int scale)
{
    Desc *d = calloc(1, sizeof *d);
    d->compute = compute;
    d->scale = scale;
    d->epilogue = 1;
    *desc = d;
    n_live++;
    return 0;
}
int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t nbytes)
{
    Desc *d = desc;
    if ((attribute == 3 || attribute == 4) && nbytes == 4)
        d->transposes[attribute - 3] = *(const int32_t *)value;
    else if (attribute == 7 && nbytes == 4)
        d->epilogue = *(const int32_t *)value;
    else if (attribute == 8 && nbytes == 8)
        d->bias = *(void *const *)value;
    else
        return INVALID;
    return 0;
}
int cublasLtMatmulDescDestroy(void *desc) { free(desc); n_live--; return 0; }

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch)
{
    Layout *l = calloc(1, sizeof *l);
    *l = (Layout){type, (int64_t)rows, (int64_t)columns, pitch, 0, 1};
    *layout = l;
    n_live++;
    return pitch < (int64_t)rows ? INVALID : 0;
}
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t nbytes)
{
    Layout *l = layout;
    if (attribute == 5 && nbytes == 4)
        l->batch = *(const int32_t *)value;
    else if (attribute == 6 && nbytes == 8)
        l->step = *(const int64_t *)value;
    else
        return INVALID;
    return 0;
}
int cublasLtMatrixLayoutDestroy(void *layout) { free(layout); n_live--; return 0; }

int cublasLtMatmulPreferenceCreate(void **preference) { *preference = calloc(1, sizeof(Preference)); n_live++; return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t nbytes)
{
    Preference *p = preference;
    if (attribute == 1 && nbytes == 8)
        p->most_bytes = *(const uint64_t *)value;
    else if (attribute == 3 && nbytes == 4)
        p->reductions = *(const uint32_t *)value;
    else if (attribute >= 5 && attribute <= 8 && nbytes == 4)
        p->alignments[attribute - 5] = *(const uint32_t *)value;
    else
        return INVALID;
    return 0;
}
int cublasLtMatmulPreferenceDestroy(void *preference) { free(preference); n_live--; return 0; }

/* Whether the sizes fit together. first is m x k, second k x n, result m x n, all column-major, after the transposes. */
static int fits(const Desc *d, const Layout *first, const Layout *second, const Layout *result)
{
    int64_t m = d->transposes[0] ? first->columns : first->rows, k = d->transposes[0] ? first->rows : first->columns;
    int64_t k2 = d->transposes[1] ? second->columns : second->rows, n = d->transposes[1] ? second->rows : second->columns;
    return m == result->rows && n == result->columns && k == k2 && first->batch == second->batch && first->batch == result->batch &&
           first->type == second->type && (d->epilogue == 1 || (d->epilogue == 4 && first->type != FLOAT64));
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *first, void *second, void *c, void *result, void *preference, int wanted,
                                   Suggestion *found, int *n_found)
{
    const Preference *p = preference;
    (void)handle;
    *n_found = 0;
    memcpy(last_alignments, p->alignments, sizeof last_alignments);
    last_reductions = p->reductions;
    if (!fits(desc, first, second, result) || c != result)
        return NOT_SUPPORTED;
    for (uint64_t i = 0; i < 3 && *n_found < wanted; i++) {
        if ((i == 1 && p->most_bytes < WORKSPACE) || (i == 2 && (p->alignments[0] < 16 || p->alignments[1] < 16)))
            continue;
        found[(*n_found)++] = (Suggestion){{{i + 100}}, i == 1 ? WORKSPACE : 0, 0, 1, {0}};
    }
    return *n_found ? 0 : NOT_SUPPORTED;
}
int cublasLtMatmulAlgoCheck(void *handle, void *desc, void *first, void *second, void *c, void *result, const Algorithm *algorithm,
                            Suggestion *found)
{
    uint64_t i = algorithm->data[0] - 100;
    (void)handle, (void)c;
    if (i > 2 || !fits(desc, first, second, result))
        return NOT_SUPPORTED;
    found->workspace_bytes = i == 1 ? WORKSPACE : 0;
    return 0;
}

static double get(const void *at, int type, int64_t i)
{
    uint32_t bits;
    float x;
    switch (type) {
    case FLOAT64:
        return ((const double *)at)[i];
    case FLOAT32:
        return ((const float *)at)[i];
    case BFLOAT16:
        bits = (uint32_t)((const uint16_t *)at)[i] << 16;
        memcpy(&x, &bits, 4);
        return x;
    }
    return (double)((const _Float16 *)at)[i];
}
static void put(void *at, int type, int64_t i, double value)
{
    float x = (float)value;
    uint32_t bits;
    switch (type) {
    case FLOAT64:
        ((double *)at)[i] = value;
        return;
    case FLOAT32:
        ((float *)at)[i] = x;
        return;
    case BFLOAT16:
        memcpy(&bits, &x, 4);
        ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
        return;
    }
    ((_Float16 *)at)[i] = (_Float16)value;
}
static int64_t position(const Layout *l, int is_transposed, int64_t batch, int64_t row, int64_t column)
{
    return batch * l->step + (is_transposed ? column + row * l->pitch : row + column * l->pitch);
}

int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *first, void *first_layout, const void *second, void *second_layout,
                   const void *beta, const void *c, void *c_layout, void *result, void *result_layout, const Algorithm *algorithm,
                   void *workspace, size_t workspace_bytes, void *stream)
{
    const Desc *d = desc;
    const Layout *x = first_layout, *y = second_layout, *z = result_layout;
    (void)handle, (void)c, (void)c_layout;
    if (next_status) {
        int status = next_status;
        next_status = 0;
        return status;
    }
    int is_wide = d->scale == FLOAT64;
    double one = is_wide ? *(const double *)alpha : *(const float *)alpha, zero = is_wide ? *(const double *)beta : *(const float *)beta;
    if (one != 1 || zero != 0 || !fits(d, x, y, z) || (algorithm->data[0] == 101 && (!workspace || workspace_bytes < WORKSPACE)) ||
        (algorithm->data[0] == 102 && ((uintptr_t)first % 16 || (uintptr_t)second % 16)))
        return INVALID;
    n_products++;
    last_compute = d->compute;
    last_stream = stream;
    last_workspace = workspace;
    last_workspace_bytes = workspace_bytes;
    int64_t depth = d->transposes[0] ? x->rows : x->columns;
    for (int64_t b = 0; b < z->batch; b++)
        for (int64_t column = 0; column < z->columns; column++)
            for (int64_t row = 0; row < z->rows; row++) {
                double total = d->epilogue == 4 ? get(d->bias, z->type, row) : 0;
                for (int64_t k = 0; k < depth; k++)
                    total += get(first, x->type, position(x, d->transposes[0], b, row, k)) *
                             get(second, y->type, position(y, d->transposes[1], b, k, column));
                put(result, z->type, position(z, 0, b, row, column), total);
            }
    return 0;
}
