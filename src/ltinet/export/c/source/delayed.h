/*
 * A linear time-invariant system with delays and an operating point, one exact step of fixed length at a time.
 *
 *     model_state state;
 *     model_init(&state);
 *     for (;;) { model_step(&state, u, y); }        u: the inputs of this sample, y: the outputs at the same time
 *
 * u and y are the measured signals: y - y0 responds to u - u0, delayed. Before the first sample inputs are at u0, and
 * until an input arrives outputs are at y0.
 *
 * The state of a run is one model_state, which may be copied to save and restore it. No memory is allocated, no data is
 * shared, every loop has a fixed length. Compile without -ffast-math.
 */
#ifndef MODEL_H
#define MODEL_H

#include "model_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* [model: signals] */
#define MODEL_INPUTS 1
#define MODEL_OUTPUTS 1
#define MODEL_TAPS 2
#define MODEL_PARTIAL 0
#define MODEL_LONGEST_LAG 7
#define MODEL_HISTORY 8
#define MODEL_WAITING 0
/* [end] */

typedef model_core_real model_real;

#define MODEL_DT MODEL_CORE_DT
#define MODEL_STATES MODEL_CORE_STATES
#define MODEL_USER_STATES MODEL_CORE_USER_STATES

/* Array size of at least 1, since C has no empty arrays. */
#define MODEL_DIM(count) ((count) > 0 ? (count) : 1)

typedef struct {
    model_core_state core;
    model_real inputs[MODEL_DIM(MODEL_HISTORY)];   /* the last samples less u0, a ring for each input */
    model_real outputs[MODEL_DIM(MODEL_WAITING)];  /* outputs that wait whole steps less y0, a ring for each output */
    model_real partial[MODEL_DIM(MODEL_OUTPUTS)];  /* for outputs delayed by a fraction of a step: contribution of the state */
    int input_at[MODEL_DIM(MODEL_INPUTS)];         /* the newest sample in each ring */
    int output_at[MODEL_DIM(MODEL_OUTPUTS)];       /* the oldest output in each ring */
    int taken;                                      /* number of samples, up to the longest lag of a tap + 1 */
} model_state;

/* Set the initial state that was chosen at export. */
void model_init(model_state *self);

/* Set the initial state again. */
void model_reset(model_state *self);

/* Read the next sample u[MODEL_INPUTS] and write the outputs y[MODEL_OUTPUTS] at its time. */
void model_step(model_state *self, const model_real u[], model_real y[]);

/* The state z[MODEL_STATES] of the core at the time of the last sample; the ring buffers are not changed. */
void model_get_state(const model_state *self, model_real z[]);
void model_set_state(model_state *self, const model_real z[]);

#if MODEL_USER_STATES
/* The same state x[MODEL_STATES] in the coordinates of the system that the network was made from, counted from the
 * operating point: x = T z. */
void model_get_user_state(const model_state *self, model_real x[]);
#endif

#ifdef __cplusplus
}
#endif

#endif
