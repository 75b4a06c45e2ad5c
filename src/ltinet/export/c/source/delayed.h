/*
 * A linear time-invariant system with delays and an operating point, one exact step of fixed length at a time.
 *
 *     model_state state;
 *     model_init(&state);
 *     for (;;) { model_step(&state, u, y); }        u: the inputs of this sample, y: the outputs at the same time
 *
 * u and y are in the units of the signals themselves: y - y0 responds to u - u0, delayed. Before the first sample inputs
 * are at u0, and until something arrives outputs are at y0.
 *
 * All that a run remembers is in its own model_state, which may be copied to save and restore it. Nothing is allocated,
 * nothing is shared, every loop has a fixed length. Compile without -ffast-math.
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

/* Room for at least one number, as C has no empty arrays. */
#define MODEL_ROOM(count) ((count) > 0 ? (count) : 1)

typedef struct {
    model_core_state core;
    model_real inputs[MODEL_ROOM(MODEL_HISTORY)];   /* the last samples less u0, a ring for each input */
    model_real outputs[MODEL_ROOM(MODEL_WAITING)];  /* outputs that wait whole steps less y0, a ring for each output */
    model_real partial[MODEL_ROOM(MODEL_OUTPUTS)];  /* of outputs that are late by a part of a step: what the state gave */
    int input_at[MODEL_ROOM(MODEL_INPUTS)];         /* the newest sample in each ring */
    int output_at[MODEL_ROOM(MODEL_OUTPUTS)];       /* the oldest output in each ring */
    int taken;                                      /* number of samples, counted up to what taps need to know */
} model_state;

/* Begin in the initial state that was chosen at export. */
void model_init(model_state *self);

/* Begin again. */
void model_reset(model_state *self);

/* Take the next sample u[MODEL_INPUTS] and give the outputs y[MODEL_OUTPUTS] at its time. */
void model_step(model_state *self, const model_real u[], model_real y[]);

/* The state z[MODEL_STATES] of the core at the time of the last sample; what waits in the rings is left as it is. */
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
