/* Steps of any length: the tables of a step, computed at run time. */
#ifndef ANY_STEP_H
#define ANY_STEP_H

#include "model.h"

/* [model: continuous sizes] */
#define MODEL_BLOCK_ENTRIES 0
/* [end] */

enum { SCALARS = MODEL_PAIRS + MODEL_REALS };

typedef struct {
    double length;                                /* 0 for none */
    double p_re[MODEL_DIM(SCALARS)], p_im[MODEL_DIM(SCALARS)];
    double begin_re[MODEL_DIM(SCALARS)], begin_im[MODEL_DIM(SCALARS)]; /* h (phi1 - phi2) */
    double end_re[MODEL_DIM(SCALARS)], end_im[MODEL_DIM(SCALARS)];     /* h phi2 */
    double p_minus_1[MODEL_DIM(MODEL_BLOCK_ENTRIES)];                    /* exp(F h) - 1, row by row */
    double begin[MODEL_DIM(MODEL_BLOCK_ENTRIES)], end[MODEL_DIM(MODEL_BLOCK_ENTRIES)];
} any_step;

/* Prepare a step of some length, unless it is the one that was prepared last. */
void any_step_prepare(any_step *self, double length);

/* Take it: the input goes in a straight line from u_now to u_next. */
void any_step_take(const any_step *self, model_state *state, const double u_now[], const double u_next[]);

#endif
