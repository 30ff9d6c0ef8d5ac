/* Pointwise ops of integers and truths, and of both with numbers: comparing and counting indices, combining masks. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"

/* ---- loops: `a` and `b` step by 1 or 0 elements ---- */

typedef struct {
    void *out;
    const void *a, *b;
    int64_t step_a, step_b;
} Pair;

typedef void (*PairLoop)(const Pair *p, int64_t count);

/* READ: what a bool may hold beside 0 and 1 counts as 1. */
#define AS_IS(value) (value)
#define TRUTH(value) ((value) != 0)
#define PAIR_LOOP(NAME, T, R, READ, EXPRESSION)                                                                   \
    CLONES static void NAME(const Pair *p, int64_t count)                                                   \
    {                                                                                                       \
        R *restrict out = p->out;                                                                           \
        const T *a = p->a, *b = p->b;                                                                       \
        if (p->step_a && p->step_b)                                                                         \
            LOOP_APART for (int64_t i = 0; i < count; i++) { const T x = READ(a[i]), y = READ(b[i]); out[i] = (R)(EXPRESSION); } \
        else if (p->step_a) {                                                                               \
            const T y = READ(*b);                                                                                 \
            LOOP_APART for (int64_t i = 0; i < count; i++) { const T x = READ(a[i]); out[i] = (R)(EXPRESSION); }  \
        }                                                                                                   \
        else {                                                                                              \
            const T x = READ(*a);                                                                                 \
            LOOP_APART for (int64_t i = 0; i < count; i++) { const T y = READ(b[i * p->step_b]); out[i] = (R)(EXPRESSION); } \
        }                                                                                                   \
    }
#define TRUTHS(NAME, EXPRESSION)                                                                            \
    PAIR_LOOP(NAME##_u8, uint8_t, uint8_t, TRUTH, EXPRESSION)                                                      \
    PAIR_LOOP(NAME##_i32, int32_t, uint8_t, AS_IS, EXPRESSION)                                                     \
    PAIR_LOOP(NAME##_i64, int64_t, uint8_t, AS_IS, EXPRESSION)
#define INTEGERS(NAME, EXPRESSION)                                                                          \
    PAIR_LOOP(NAME##_i32, int32_t, int32_t, AS_IS, EXPRESSION)                                                     \
    PAIR_LOOP(NAME##_i64, int64_t, int64_t, AS_IS, EXPRESSION)
#define NUMBERS(NAME, EXPRESSION) PAIR_LOOP(NAME##_u8, uint8_t, uint8_t, TRUTH, EXPRESSION) INTEGERS(NAME, EXPRESSION)

TRUTHS(eq, x == y)
TRUTHS(ne, x != y)
TRUTHS(lt, x < y)
TRUTHS(le, x <= y)
TRUTHS(gt, x > y)
TRUTHS(ge, x >= y)
TRUTHS(logical_and, (x != 0) & (y != 0))
TRUTHS(logical_or, (x != 0) | (y != 0))
TRUTHS(logical_xor, (x != 0) ^ (y != 0))
NUMBERS(bitwise_and, x & y)
NUMBERS(bitwise_or, x | y)
NUMBERS(bitwise_xor, x ^ y)
NUMBERS(maximum, x > y ? x : y)
NUMBERS(minimum, x < y ? x : y)
/* They wrap, as the machine does. */
INTEGERS(add, (uint64_t)x + (uint64_t)y)
INTEGERS(sub, (uint64_t)x - (uint64_t)y)
INTEGERS(mul, (uint64_t)x * (uint64_t)y)
/* No divisor is zero here, and by -1 it is a negation. */
#define REST(x, y) ((y) == -1 ? 0 : (x) % (y))
INTEGERS(floor_divide, y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y - ((REST(x, y) != 0) & ((x < 0) != (y < 0))))
INTEGERS(remainder, REST(x, y) + (((REST(x, y) != 0) & ((x < 0) != (y < 0))) ? y : 0))

enum { TO_BOOL = 1, DIVIDES = 2 };

static const struct WholeOp {
    PairLoop loops[3]; /* bool (NULL: of none), int32, int64 */
    int flags;
}
#define ENTRY(NAME, FLAGS) {{NAME##_u8, NAME##_i32, NAME##_i64}, FLAGS}
#define WITHOUT_BOOL(NAME, FLAGS) {{NULL, NAME##_i32, NAME##_i64}, FLAGS}
    of_eq = ENTRY(eq, TO_BOOL), of_ne = ENTRY(ne, TO_BOOL), of_lt = ENTRY(lt, TO_BOOL),
    of_le = ENTRY(le, TO_BOOL), of_gt = ENTRY(gt, TO_BOOL), of_ge = ENTRY(ge, TO_BOOL),
    of_logical_and = ENTRY(logical_and, TO_BOOL), of_logical_or = ENTRY(logical_or, TO_BOOL),
    of_logical_xor = ENTRY(logical_xor, TO_BOOL), of_bitwise_and = ENTRY(bitwise_and, 0),
    of_bitwise_or = ENTRY(bitwise_or, 0), of_bitwise_xor = ENTRY(bitwise_xor, 0), of_maximum = ENTRY(maximum, 0),
    of_minimum = ENTRY(minimum, 0), of_add = WITHOUT_BOOL(add, 0), of_sub = WITHOUT_BOOL(sub, 0), of_mul = WITHOUT_BOOL(mul, 0),
    of_floor_divide = WITHOUT_BOOL(floor_divide, DIVIDES), of_remainder = WITHOUT_BOOL(remainder, DIVIDES);

static int place_of(int code) { return code == EAGER_BOOL ? 0 : code == EAGER_INT32 ? 1 : code == EAGER_INT64 ? 2 : -1; }

/* ---- operands ---- */

/* A number as an element of `code`; false where it would decide the dtype, or does not fit. */
static bool read_number(PyObject *o, int code, int64_t *bytes)
{
    if (PyBool_Check(o)) {
        *bytes = o == Py_True;
        return true;
    }
    if (code == EAGER_BOOL || !read_int(o, bytes)) return false;
    return code == EAGER_INT64 || (*bytes >= INT32_MIN && *bytes <= INT32_MAX);
}

/* Sizes of the result of two row-major operands (NULL: a number), of which either has them itself and the other is as large
 * or a single element; false for any other pair. */
static bool read_pair(const TensorObject *a, const TensorObject *b, const TensorObject **like)
{
    if ((a && !is_row_major(a)) || (b && !is_row_major(b))) return false;
    *like = !b ? a : !a ? b : tensor_ndim(a) >= tensor_ndim(b) && (tensor_ndim(a) > tensor_ndim(b) || tensor_count(a) != 1) ? a : b;
    const TensorObject *other = *like == a ? b : a;
    return !other || same_sizes(other, tensor_sizes(*like), tensor_ndim(*like)) || tensor_count(other) == 1;
}

static bool has_zero(const Pair *p, int place, int64_t count)
{
    bool found = false;
    if (!p->step_b && count) count = 1;
    if (place == 1) for (int64_t i = 0; i < count; i++) found |= ((const int32_t *)p->b)[i] == 0;
    else for (int64_t i = 0; i < count; i++) found |= ((const int64_t *)p->b)[i] == 0;
    return found;
}

typedef struct {
    PairLoop loop;
    Pair pair;
    int from, to; /* bytes of an element */
} Span;

static void run_span(void *context, long begin, long end)
{
    const Span *s = context;
    Pair p = s->pair;
    p.out = (char *)p.out + begin * s->to;
    p.a = (const char *)p.a + begin * s->from * p.step_a;
    p.b = (const char *)p.b + begin * s->from * p.step_b;
    s->loop(&p, end - begin);
}

/* op(x, other): of one dtype among bool, int32 and int64, or with a number; NULL for what is none of that. */
static bool combine(const struct WholeOp *op, PyObject *const *args, Results *results)
{
    const TensorObject *a = cpu_tensor(args[0]), *b = cpu_tensor(args[1]), *like;
    int64_t number = 0;
    if (!a && !b) return false;
    const int code = code_of(a ? a : b), place = place_of(code);
    if (place < 0 || !op->loops[place] || (a && b && code_of(b) != code)) return false;
    if (!(a && b) && !read_number(args[a ? 1 : 0], code, &number)) return false;
    if (!read_pair(a, b, &like) || tensor_count(like) == 0) return false;
    const int64_t count = tensor_count(like);
    Span s = {op->loops[place], {NULL, a ? (const void *)a->data : &number, b ? (const void *)b->data : &number,
                                 a && tensor_count(a) == count, b && tensor_count(b) == count}, g_itemsize[code], 1};
    if (op->flags & DIVIDES && has_zero(&s.pair, place, count)) return false; /* which raises */
    TensorObject *out = result_memory(results, op->flags & TO_BOOL ? EAGER_BOOL : code, tensor_ndim(like), tensor_sizes(like));
    if (!out) return false;
    s.pair.out = out->data;
    s.to = g_itemsize[code_of(out)];
    parallel(run_span, &s, (long)count, 16384, (double)count);
    return out != NULL;
}

#define KERNEL(NAME) bool kernel_##NAME(PyObject *const *args, Results *results) { return combine(&of_##NAME, args, results); }
KERNEL(eq)
KERNEL(ne)
KERNEL(lt)
KERNEL(le)
KERNEL(gt)
KERNEL(ge)
KERNEL(logical_and)
KERNEL(logical_or)
KERNEL(logical_xor)
KERNEL(bitwise_and)
KERNEL(bitwise_or)
KERNEL(bitwise_xor)
KERNEL(maximum)
KERNEL(minimum)
KERNEL(add)
KERNEL(sub)
KERNEL(mul)
KERNEL(floor_divide)
KERNEL(remainder)

/* bitwise_not(x) and logical_not(x) of bools; the first of integers as well */
static bool invert(PyObject *const *args, bool bits, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]);
    const int place = x ? place_of(code_of(x)) : -1;
    if (place < 0 || (place && !bits) || !is_row_major(x) || !tensor_count(x)) return false;
    int64_t all = place ? -1 : 1;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (!out) return false;
    Span s = {of_bitwise_xor.loops[place], {out->data, x->data, &all, 1, 0}, g_itemsize[code_of(x)], g_itemsize[code_of(x)]};
    parallel(run_span, &s, (long)tensor_count(x), 16384, (double)tensor_count(x));
    return out != NULL;
}

bool kernel_bitwise_not(PyObject *const *args, Results *results) { return invert(args, true, results); }
bool kernel_logical_not(PyObject *const *args, Results *results) { return invert(args, false, results); }
