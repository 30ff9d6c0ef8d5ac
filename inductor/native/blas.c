/* Products of matrices by cuBLASLt: the library's functions, and one product of fixed sizes with its algorithm.
 *
 * cuBLASLt is column-major. A row-major product result = a @ b is the column-major product result.T = b.T @ a.T over the same memory, so
 * the library's first operand is our b. */
#include "blas.h"

#include "cuda_driver.h"
#include "graph.h"

#include <dlfcn.h>
#include <string.h>

enum { MAX_SUGGESTIONS = 32, ALGORITHM_BYTES = 64 };

/* The numbers of the library's enums, which have been the same since CUDA 11. */
enum { CUDA_FLOAT32 = 0, CUDA_FLOAT64 = 1, CUDA_FLOAT16 = 2, CUDA_BFLOAT16 = 14 };
enum { COMPUTE_FLOAT32 = 68, COMPUTE_FLOAT64 = 70, COMPUTE_TF32 = 77 };
enum { DESC_TRANSPOSE_FIRST = 3, DESC_TRANSPOSE_SECOND = 4, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8 };
enum { EPILOGUE_BIAS = 4 };
enum { LAYOUT_BATCH = 5, LAYOUT_STEP = 6 };
enum { PREFER_WORKSPACE_BYTES = 1, PREFER_REDUCTIONS = 3, PREFER_ALIGNMENTS = 5 /* of the first operand, the second, c, and the result */ };
enum { REDUCTIONS_IN_COMPUTE_TYPE = 2 }; /* parts of a sum are added in the type of the sum, in a fixed order */

typedef struct {
    uint64_t data[ALGORITHM_BYTES / 8];
} Algorithm;

typedef struct {
    Algorithm algorithm;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} Suggestion;

typedef struct {
    int (*create)(void **handle);
    size_t (*version)(void);
    const char *(*error_text)(int status);
    int (*desc_create)(void **desc, int compute_type, int scale_type);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t nbytes);
    int (*desc_destroy)(void *desc);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch);
    int (*layout_set)(void *layout, int attribute, const void *value, size_t nbytes);
    int (*layout_destroy)(void *layout);
    int (*preference_create)(void **preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t nbytes);
    int (*preference_destroy)(void *preference);
    int (*suggest)(void *handle, void *desc, void *first, void *second, void *c, void *result, void *preference, int wanted,
                   Suggestion *found, int *n_found);
    int (*check)(void *handle, void *desc, void *first, void *second, void *c, void *result, const Algorithm *algorithm,
                 Suggestion *found);
    int (*run)(void *handle, void *desc, const void *alpha, const void *first, void *first_layout, const void *second,
               void *second_layout, const void *beta, const void *c, void *c_layout, void *result, void *result_layout,
               const Algorithm *algorithm, void *workspace, size_t workspace_bytes, void *stream);
} Blas;

static const struct {
    const char *name;
    size_t offset;
} ENTRIES[] = {
#define ENTRY(field, name) {"cublasLt" name, offsetof(Blas, field)}
    ENTRY(create, "Create"),
    ENTRY(version, "GetVersion"),
    ENTRY(error_text, "GetStatusString"),
    ENTRY(desc_create, "MatmulDescCreate"),
    ENTRY(desc_set, "MatmulDescSetAttribute"),
    ENTRY(desc_destroy, "MatmulDescDestroy"),
    ENTRY(layout_create, "MatrixLayoutCreate"),
    ENTRY(layout_set, "MatrixLayoutSetAttribute"),
    ENTRY(layout_destroy, "MatrixLayoutDestroy"),
    ENTRY(preference_create, "MatmulPreferenceCreate"),
    ENTRY(preference_set, "MatmulPreferenceSetAttribute"),
    ENTRY(preference_destroy, "MatmulPreferenceDestroy"),
    ENTRY(suggest, "MatmulAlgoGetHeuristic"),
    ENTRY(check, "MatmulAlgoCheck"),
    ENTRY(run, "Matmul"),
#undef ENTRY
};

static Blas g_blas;
static int g_is_open;
static void *g_handles[CUDA_MAX_DEVICES];

static int blas_check(int status, const char *what)
{
    if (status == 0)
        return 0;
    PyErr_Format(PyExc_RuntimeError, "cuBLASLt error while %s: %s (status %d)", what, g_blas.error_text(status), status);
    return -1;
}

/* open_blas(path): opens the library and returns its version. A second call returns the version alone. */
static PyObject *open_blas(PyObject *Py_UNUSED(self), PyObject *path)
{
    if (!g_is_open) {
        const char *text = PyUnicode_AsUTF8(path);
        void *library = text ? dlopen(text, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (!library)
            return text ? PyErr_Format(PyExc_OSError, "cuBLASLt cannot be loaded: %s", dlerror()) : NULL;
        for (size_t i = 0; i < sizeof ENTRIES / sizeof *ENTRIES; i++) {
            void *address = dlsym(library, ENTRIES[i].name);
            if (!address) {
                PyErr_Format(PyExc_OSError, "%U has no %s; install cuBLAS of CUDA 12 or later", path, ENTRIES[i].name);
                dlclose(library);
                return NULL;
            }
            *(void **)((char *)&g_blas + ENTRIES[i].offset) = address;
        }
        g_is_open = 1;
    }
    return PyLong_FromSize_t(g_blas.version());
}

PyMethodDef blas_functions[] = {
    {"open_blas", open_blas, METH_O,
     "open_blas(path): open cuBLASLt, which stays open, and return its version. Raises: OSError"},
    {NULL, NULL, 0, NULL},
};

/* ------------------------------------------------------------------ MatrixProduct */

typedef struct {
    PyObject_HEAD
    int device, is_wide; /* is_wide: alpha and beta are float64 */
    void *handle, *desc, *first, *second, *result;
    Algorithm algorithm;
} ProductObject;

/* An operand: rows and columns of the row-major matrix, whether it is stored transposed, pitch and step in elements. */
typedef struct {
    long long rows, columns, pitch, step;
    int is_transposed;
} Operand;

static int cuda_type(int code)
{
    switch (code) {
    case EAGER_FLOAT16:
        return CUDA_FLOAT16;
    case EAGER_BFLOAT16:
        return CUDA_BFLOAT16;
    case EAGER_FLOAT32:
        return CUDA_FLOAT32;
    case EAGER_FLOAT64:
        return CUDA_FLOAT64;
    }
    PyErr_Format(PyExc_TypeError, "MatrixProduct: dtype code %d; allowed: float16, bfloat16, float32 and float64", code);
    return -1;
}

/* The column-major matrix over the memory of a row-major one has its rows and columns exchanged. */
static int make_layout(void **layout, const Operand *of, int type, long long batch)
{
    int64_t rows = of->is_transposed ? of->rows : of->columns, columns = of->is_transposed ? of->columns : of->rows, step = of->step;
    int32_t count = (int32_t)batch;
    if (blas_check(g_blas.layout_create(layout, type, (uint64_t)rows, (uint64_t)columns, of->pitch), "describing a matrix") < 0)
        return -1;
    if (batch == 1)
        return 0;
    int status = g_blas.layout_set(*layout, LAYOUT_BATCH, &count, sizeof count);
    if (!status)
        status = g_blas.layout_set(*layout, LAYOUT_STEP, &step, sizeof step);
    return blas_check(status, "describing a batch");
}

static int make_handle(ProductObject *p)
{
    void *before;
    if (cuda_enter(p->device, &before) < 0)
        return -1;
    int status = g_handles[p->device] ? 0 : g_blas.create(&g_handles[p->device]);
    p->handle = g_handles[p->device];
    cuda_leave(before);
    return blas_check(status, "opening the library");
}

static int make_desc(ProductObject *p, const Operand *a, const Operand *b, int compute, int has_bias, int bias_alignment)
{
    int32_t first = b->is_transposed, second = a->is_transposed, epilogue = EPILOGUE_BIAS;
    void *aligned = (void *)(uintptr_t)bias_alignment; /* suggestions depend on the alignment of the address */
    int status = g_blas.desc_create(&p->desc, compute, p->is_wide ? CUDA_FLOAT64 : CUDA_FLOAT32);
    if (!status)
        status = g_blas.desc_set(p->desc, DESC_TRANSPOSE_FIRST, &first, sizeof first);
    if (!status)
        status = g_blas.desc_set(p->desc, DESC_TRANSPOSE_SECOND, &second, sizeof second);
    if (!status && has_bias)
        status = g_blas.desc_set(p->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!status && has_bias)
        status = g_blas.desc_set(p->desc, DESC_BIAS_POINTER, &aligned, sizeof aligned);
    return blas_check(status, "describing a product");
}

static PyObject *product_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", "dtype", "stored", "is_tf32", "sizes", "a", "b", "result", "bias_alignment", NULL};
    int device, dtype, stored, is_tf32, bias_alignment;
    long long batch, rows, columns, depth;
    Operand a, b, result = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iiip(LLLL)(pLL)(pLL)(LL)i", names, &device, &dtype, &stored, &is_tf32, &batch,
                                     &rows, &columns, &depth, &a.is_transposed, &a.pitch, &a.step, &b.is_transposed, &b.pitch, &b.step,
                                     &result.pitch, &result.step, &bias_alignment))
        return NULL;
    if (!g_is_open) {
        PyErr_SetString(PyExc_RuntimeError, "MatrixProduct: the library is not open; call open_blas first");
        return NULL;
    }
    int from = cuda_type(dtype), to = from < 0 ? -1 : cuda_type(stored);
    if (to < 0)
        return NULL;
    if (batch < 1 || batch > INT32_MAX || rows < 1 || columns < 1 || depth < 1) {
        PyErr_Format(PyExc_ValueError, "MatrixProduct: %lld products of %lld x %lld x %lld; allowed: positive sizes", batch, rows,
                     columns, depth);
        return NULL;
    }
    a.rows = result.rows = rows;
    a.columns = b.rows = depth;
    b.columns = result.columns = columns;
    ProductObject *p = (ProductObject *)type->tp_alloc(type, 0);
    if (!p)
        return NULL;
    p->device = device;
    p->is_wide = from == CUDA_FLOAT64;
    int compute = p->is_wide ? COMPUTE_FLOAT64 : is_tf32 && from == CUDA_FLOAT32 ? COMPUTE_TF32 : COMPUTE_FLOAT32;
    if (make_handle(p) < 0 || make_desc(p, &a, &b, compute, bias_alignment > 0, bias_alignment) < 0 ||
        make_layout(&p->first, &b, from, batch) < 0 || make_layout(&p->second, &a, from, batch) < 0 ||
        make_layout(&p->result, &result, to, batch) < 0)
        Py_CLEAR(p);
    return (PyObject *)p;
}

static void product_dealloc(ProductObject *p)
{
    if (p->desc)
        g_blas.desc_destroy(p->desc);
    if (p->first)
        g_blas.layout_destroy(p->first);
    if (p->second)
        g_blas.layout_destroy(p->second);
    if (p->result)
        g_blas.layout_destroy(p->result);
    Py_TYPE(p)->tp_free(p);
}

static int fill_preference(void *preference, size_t most_bytes, const int alignments[3])
{
    uint32_t reductions = REDUCTIONS_IN_COMPUTE_TYPE;
    /* by number of the attribute: the library's first operand is b */
    const uint32_t given[] = {(uint32_t)alignments[1], (uint32_t)alignments[0], (uint32_t)alignments[2], (uint32_t)alignments[2]};
    int status = g_blas.preference_set(preference, PREFER_WORKSPACE_BYTES, &most_bytes, sizeof most_bytes);
    if (!status)
        status = g_blas.preference_set(preference, PREFER_REDUCTIONS, &reductions, sizeof reductions);
    for (int i = 0; i < 4 && !status; i++)
        status = g_blas.preference_set(preference, PREFER_ALIGNMENTS + i, &given[i], sizeof given[i]);
    return blas_check(status, "describing what an algorithm may use");
}

static PyObject *suggestions_list(const Suggestion *found, int n)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        if (found[i].status != 0)
            continue;
        PyObject *entry = Py_BuildValue("(y#n)", (const char *)&found[i].algorithm, (Py_ssize_t)ALGORITHM_BYTES,
                                        (Py_ssize_t)found[i].workspace_bytes);
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *product_suggestions(ProductObject *p, PyObject *args)
{
    int wanted, alignments[3], n = 0;
    Py_ssize_t most_bytes;
    Suggestion found[MAX_SUGGESTIONS];
    void *preference = NULL;
    if (!PyArg_ParseTuple(args, "in(iii)", &wanted, &most_bytes, &alignments[0], &alignments[1], &alignments[2]))
        return NULL;
    if (wanted < 1 || wanted > MAX_SUGGESTIONS) {
        PyErr_Format(PyExc_ValueError, "suggestions: %d wanted; allowed: 1 to %d", wanted, MAX_SUGGESTIONS);
        return NULL;
    }
    if (blas_check(g_blas.preference_create(&preference), "describing what an algorithm may use") < 0)
        return NULL;
    PyObject *list = NULL;
    if (fill_preference(preference, (size_t)most_bytes, alignments) == 0) {
        /* A status that is not 0 means that no algorithm fits. */
        int status = g_blas.suggest(p->handle, p->desc, p->first, p->second, p->result, p->result, preference, wanted, found, &n);
        list = suggestions_list(found, status ? 0 : n);
    }
    g_blas.preference_destroy(preference);
    return list;
}

static PyObject *product_choose(ProductObject *p, PyObject *algorithm)
{
    Suggestion found;
    if (!PyBytes_Check(algorithm) || PyBytes_GET_SIZE(algorithm) != ALGORITHM_BYTES) {
        PyErr_Format(PyExc_TypeError, "choose: an algorithm is %d bytes", ALGORITHM_BYTES);
        return NULL;
    }
    memcpy(&p->algorithm, PyBytes_AS_STRING(algorithm), ALGORITHM_BYTES);
    int status = g_blas.check(p->handle, p->desc, p->first, p->second, p->result, p->result, &p->algorithm, &found);
    if (blas_check(status, "checking an algorithm") < 0)
        return NULL;
    return PyLong_FromSize_t(found.workspace_bytes);
}

int blas_run(PyObject *product, const void *a, const void *b, void *result, const void *bias, void *workspace, int64_t workspace_bytes,
             void *stream)
{
    const ProductObject *p = (ProductObject *)product;
    static const float one = 1, zero = 0;
    static const double wide_one = 1, wide_zero = 0;
    const void *alpha = p->is_wide ? (const void *)&wide_one : (const void *)&one;
    const void *beta = p->is_wide ? (const void *)&wide_zero : (const void *)&zero;
    if (bias && blas_check(g_blas.desc_set(p->desc, DESC_BIAS_POINTER, &bias, sizeof bias), "passing a bias") < 0)
        return -1;
    int status = g_blas.run(p->handle, p->desc, alpha, b, p->first, a, p->second, beta, result, p->result, result, p->result,
                            &p->algorithm, workspace, (size_t)workspace_bytes, stream);
    return blas_check(status, "starting a product of matrices");
}

static PyMethodDef product_methods[] = {
    {"suggestions", (PyCFunction)product_suggestions, METH_VARARGS,
     "suggestions(wanted, most_bytes, alignments): (algorithm, bytes of workspace) of each suggested algorithm, the likely ones first. "
     "most_bytes: of workspace. alignments: in bytes, of the addresses of a, b and the result. Raises: RuntimeError"},
    {"choose", (PyCFunction)product_choose, METH_O,
     "choose(algorithm): run with this algorithm from now on. Returns its bytes of workspace. Raises: RuntimeError if the library "
     "does not have it for this product"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject MatrixProduct_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "inductor._native.MatrixProduct",
    .tp_basicsize = sizeof(ProductObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "MatrixProduct(device, dtype, stored, is_tf32, sizes, a, b, result, bias_alignment): products of matrices on a device, "
              "result[i] = a[i] @ b[i] + bias. Raises: RuntimeError, ValueError",
    .tp_new = product_new,
    .tp_dealloc = (destructor)product_dealloc,
    .tp_methods = product_methods,
};
