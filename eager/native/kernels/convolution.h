/* A convolution, as the files that compute it see it. */
#ifndef EAGER_CONV_H
#define EAGER_CONV_H

#include <stdbool.h>

/* A convolution from c channels to o. Images are (n, c, *in) and (n, o, *out), the weight (o, c / groups, *k), row-major. */
typedef struct {
    long n, c, o, groups;
    long in[3], out[3], k[3], stride[3], pad[3], dilation[3];
    long cg, og, depth, inputs, outputs; /* of a group; depth = cg * prod(k); elements of one channel */
    int dtype;                           /* 0: float32, 1: float64, as GemmCall has it */
} Conv;

static inline double work_of(const Conv *v) { return (double)v->n * (double)v->o * (double)v->depth * (double)v->outputs; }

/* direct_convolution.c. Forward: y from x = `from`, w and bias. Adjoint: x's gradient from y's; `bias` is added to it by
 * channel. False if out of memory. */
bool direct_convolution(const Conv *v, bool adjoint, const void *from, const void *w, const void *bias, void *to);
/* The gradient of w, for groups of few channels. */
void direct_weight_gradient(const Conv *v, const void *x, const void *g, void *to);
#endif
