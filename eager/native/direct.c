/* The kernels that answer an op's call without Python: what dispatch finds by the op's name. */
#define PY_SSIZE_T_CLEAN
#include "calls.h"
#include "direct.h"

static const struct {
    const char *name;
    int arity;
    Kernel run;
} kernels[] = {
    {"sum", 4, kernel_sum},
    {"mean", 4, kernel_mean},
    {"amax", 3, kernel_amax},
    {"amin", 3, kernel_amin},
    {"vector_norm", 4, kernel_vector_norm},
    {"softmax", 2, kernel_softmax},
    {"log_softmax", 2, kernel_log_softmax},
    {"softmax_backward", 3, kernel_softmax_backward},
    {"log_softmax_backward", 3, kernel_log_softmax_backward},
    {"native_layer_norm", 5, kernel_layer_norm},
    {"layer_norm_backward", 6, kernel_layer_norm_backward},
    {"layer_norm_backward_weight", 5, kernel_layer_norm_backward_weight},
    {"mm", 2, kernel_mm},
    {"bmm", 2, kernel_bmm},
    {"matmul", 2, kernel_matmul},
    {"linear", 3, kernel_linear},
    {"convolution", 9, kernel_convolution},
    {"conv_weight", 7, kernel_conv_weight},
    {"attention", 6, kernel_attention},
    {"attention_backward", 9, kernel_attention_backward},
    {"cross_entropy", 4, kernel_cross_entropy},
    {"cross_entropy_backward", 6, kernel_cross_entropy_backward},
    {"eq", 2, kernel_eq},
    {"ne", 2, kernel_ne},
    {"lt", 2, kernel_lt},
    {"le", 2, kernel_le},
    {"gt", 2, kernel_gt},
    {"ge", 2, kernel_ge},
    {"logical_and", 2, kernel_logical_and},
    {"logical_or", 2, kernel_logical_or},
    {"logical_xor", 2, kernel_logical_xor},
    {"bitwise_and", 2, kernel_bitwise_and},
    {"bitwise_or", 2, kernel_bitwise_or},
    {"bitwise_xor", 2, kernel_bitwise_xor},
    {"maximum", 2, kernel_maximum},
    {"minimum", 2, kernel_minimum},
    {"add", 2, kernel_add},
    {"sub", 2, kernel_sub},
    {"mul", 2, kernel_mul},
    {"floor_divide", 2, kernel_floor_divide},
    {"div_floor", 2, kernel_floor_divide},
    {"remainder", 2, kernel_remainder},
    {"bitwise_not", 1, kernel_bitwise_not},
    {"logical_not", 1, kernel_logical_not},
    {"all", 3, kernel_all},
    {"any", 3, kernel_any},
    {"to_dtype", 2, kernel_to_dtype},
    {"max_pool", 6, kernel_max_pool},
    {"avg_pool", 7, kernel_avg_pool},
    {"avg_pool_backward", 7, kernel_avg_pool_backward},
    {"adaptive_avg_pool", 2, kernel_adaptive_avg_pool},
    {"adaptive_avg_pool_backward", 2, kernel_adaptive_avg_pool_backward},
    {"gather", 3, kernel_gather},
    {"scatter_add", 4, kernel_scatter_add},
    {"where", 3, kernel_where},
    {"scatter", 4, kernel_scatter},
    {"flip", 2, kernel_flip},
    {"roll", 3, kernel_roll},
    {"tril", 2, kernel_tril},
    {"triu", 2, kernel_triu},
    {"stack", 2, kernel_stack},
    {"constant_pad_nd", 3, kernel_constant_pad_nd},
    {"arange", 5, kernel_arange},
    {"index", 2, kernel_index},
    {"argmax", 3, kernel_argmax},
    {"argmin", 3, kernel_argmin},
    {"topk", 5, kernel_topk},
    {"sort", 4, kernel_sort},
    {"cumsum", 3, kernel_cumsum},
    {"var", 4, kernel_var},
    {"std", 4, kernel_std},
    {"philox_uniform", 3, kernel_philox_uniform},
    {"philox_normal", 3, kernel_philox_normal},
    {"philox_randint", 5, kernel_philox_randint},
    {"index_put", 4, kernel_index_put},
    {"index_add", 5, kernel_index_add},
    {"nonzero", 1, kernel_nonzero},
    {"masked_select", 2, kernel_masked_select},
    {"masked_fill", 3, kernel_masked_fill},
    {"clamp", 3, kernel_clamp},
    {"rng_state", 2, kernel_rng_state},
    {"full", 4, kernel_full},
    {"empty", 3, kernel_empty},
    {"int_table", 2, kernel_int_table},
    {"float_table", 3, kernel_float_table},
    {"clone", 2, kernel_clone},
    {"cat", 2, kernel_cat},
    {"index_select", 3, kernel_index_select},
    {"embedding", 3, kernel_embedding},
    {"embedding_backward", 4, kernel_embedding_backward},
};

int kernel_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, name)) return (int)i;
    return -1;
}

PyObject *kernel_run(int which, PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == kernels[which].arity ? kernels[which].run(args) : NULL;
}

TensorObject *as_row_major(TensorObject *t)
{
    if (is_row_major(t)) return (TensorObject *)Py_NewRef((PyObject *)t);
    TensorObject *made = new_tensor(code_of(t), tensor_ndim(t), tensor_sizes(t));
    if (made && made->data)
        copy_elements(made->data, tensor_strides(made), t->data, tensor_strides(t), tensor_sizes(t), tensor_ndim(t), g_itemsize[code_of(t)]);
    return made;
}
