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

/* Of groups with few channels (depthwise.c): y from x and w; x's gradient y from g and w, plus `bias`; w's gradient y. */
void depthwise_forward(const Conv *v, const void *x, const void *w, const void *bias, void *y);
void depthwise_adjoint(const Conv *v, const void *g, const void *w, const void *bias, void *y);
void depthwise_weight(const Conv *v, const void *x, const void *g, void *y);
#endif
