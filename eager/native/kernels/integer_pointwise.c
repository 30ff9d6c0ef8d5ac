/* Pointwise ops over bools, int32 and int64: arguments and results around the loops of integer_loops.h. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/integer_math.h"
#include "kernels/kernel.h"
#include "kernels/pointwise_loop.h"

enum { BOOL, INT32, INT64, NUM_INTEGERS };

/* loops[mask][dtype]: the mask has a bit for each operand that is read as an array; NULL where an op has no loop over bools. */
typedef struct {
    int arity, to_bool, fallible; /* fallible: raises for a zero among the second operand's elements */
    Loop loops[1 << 2][NUM_INTEGERS];
} IntegerOp;

#include "kernels/integer_loops.h"

static int dtype_index(int code) { return code == EAGER_BOOL ? BOOL : code == EAGER_INT32 ? INT32 : code == EAGER_INT64 ? INT64 : -1; }

/* ---- operands ---- */

/* A number as an element of `code`; false where the number decides the dtype of the result, or does not fit. */
static bool read_number(PyObject *o, int code, int64_t *value)
{
    if (PyBool_Check(o)) {
        *value = o == Py_True;
        return true;
    }
    if (code == EAGER_BOOL || !read_int(o, value)) return false;
    return code == EAGER_INT64 || (*value >= INT32_MIN && *value <= INT32_MAX);
}

static int64_t first_element(const TensorObject *t)
{
    switch (code_of(t)) {
    case EAGER_BOOL: return *(const uint8_t *)t->data != 0;
    case EAGER_INT32: return *(const int32_t *)t->data;
    default: return *(const int64_t *)t->data;
    }
}

/* The operand whose sizes the result has, of two row-major operands (NULL: a number): the other operand has the same sizes or a
 * single element. NULL for any other pair. */
static const TensorObject *shape_of_pair(const TensorObject *a, const TensorObject *b)
{
    if ((a && !is_row_major(a)) || (b && !is_row_major(b))) return NULL;
    const TensorObject *like = !b ? a : !a ? b : tensor_ndim(a) >= tensor_ndim(b) && (tensor_ndim(a) > tensor_ndim(b) || tensor_count(a) != 1) ? a : b;
    const TensorObject *other = like == a ? b : a;
    return !other || same_sizes(other, tensor_sizes(like), tensor_ndim(like)) || tensor_count(other) == 1 ? like : NULL;
}

static bool has_zero(const Pointwise *ctx, bool is_array, int dtype, int64_t count)
{
    bool found = false;
    if (!is_array) return ctx->integer[1] == 0;
    if (dtype == INT32) for (int64_t i = 0; i < count; i++) found |= ((const int32_t *)ctx->in[1])[i] == 0;
    else for (int64_t i = 0; i < count; i++) found |= ((const int64_t *)ctx->in[1])[i] == 0;
    return found;
}

typedef struct {
    Loop loop;
    Pointwise ctx;
} Job;

static void run_loop(void *context, long begin, long end)
{
    const Job *job = context;
    job->loop(&job->ctx, begin, end);
}

/* op(x) or op(x, other): tensors of one dtype among bool, int32 and int64, or a tensor and a number */
static bool integer_pointwise(const IntegerOp *op, PyObject *const *args, Results *results)
{
    const TensorObject *operands[2] = {cpu_tensor(args[0]), op->arity == 2 ? cpu_tensor(args[1]) : NULL};
    const TensorObject *first = operands[0] ? operands[0] : operands[1];
    if (!first) return false;
    const int code = code_of(first), dtype = dtype_index(code);
    if (dtype < 0 || (operands[0] && operands[1] && code_of(operands[1]) != code)) return false;
    const TensorObject *like = shape_of_pair(operands[0], operands[1]);
    const int64_t count = like ? tensor_count(like) : 0;
    if (!count) return false;
    Job job;
    int mask = 0;
    for (int i = 0; i < op->arity; i++) {
        if (!operands[i]) {
            if (!read_number(args[i], code, &job.ctx.integer[i])) return false;
        }
        else if (tensor_count(operands[i]) == count) {
            mask |= 1 << i;
            job.ctx.in[i] = operands[i]->data;
        }
        else job.ctx.integer[i] = first_element(operands[i]);
    }
    if (!(job.loop = op->loops[mask][dtype])) return false;
    if (op->fallible && has_zero(&job.ctx, mask & 2, dtype, count)) return false; /* dispatch raises */
    TensorObject *out = result_memory(results, op->to_bool ? EAGER_BOOL : code, tensor_ndim(like), tensor_sizes(like));
    if (!out) return false;
    job.ctx.out = out->data;
    parallel(run_loop, &job, (long)count, 16384, (double)count);
    return true;
}

#define KERNEL(NAME, PLACE) \
    bool kernel_##NAME(PyObject *const *args, Results *results) { return integer_pointwise(&integer_ops[PLACE], args, results); }
INTEGER_KERNELS
