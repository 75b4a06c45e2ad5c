/*
 * A linear time-invariant system as a network of independent blocks, one exact step of fixed length at a time.
 *
 *     model_state state;
 *     model_init(&state);
 *     for (;;) { model_step(&state, u, y); }        u: the inputs of this sample, y: the outputs at the same time
 *
 * The state of a run is one model_state, which may be copied to save and restore it. No memory is allocated, no data is
 * shared, every loop has a fixed length. Compile without -ffast-math.
 */
#ifndef MODEL_H
#define MODEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* [model: sizes] */
typedef double model_real;

#define MODEL_DT 0x1.0000000000000p-3 /* 0.125 */
#define MODEL_INPUTS 1
#define MODEL_OUTPUTS 1
#define MODEL_STATES 4
#define MODEL_PADDED 4
#define MODEL_LANES 1
#define MODEL_LINEAR 1
#define MODEL_USER_STATES 0
#define MODEL_PAIRS 2
#define MODEL_FAST_PAIRS 2
#define MODEL_REALS 0
#define MODEL_FAST_REALS 0
#define MODEL_BLOCKS 0
#define MODEL_FAST_BLOCKS 0
#define MODEL_LARGEST_BLOCK 1
#define MODEL_EQUAL_BLOCKS 1
#define MODEL_SLOW 0
#define MODEL_LOST_OF_REALS 0
#define MODEL_LOST_OF_BLOCKS 0

/* One step: 21 multiplications and 17 additions. */

enum {
    MODEL_IN_U1 = 0 /* u1 */
};

enum {
    MODEL_OUT_Y1 = 0 /* y1 */
};
/* [end] */

/* Array size of at least 1, since C has no empty arrays. */
#define MODEL_DIM(count) ((count) > 0 ? (count) : 1)

typedef struct {
    model_real z[MODEL_DIM(MODEL_PADDED)]; /* at the time of the last sample; zeros behind MODEL_STATES */
    model_real u[MODEL_DIM(MODEL_INPUTS)]; /* the last sample */
#if MODEL_SLOW > 0
    model_real lost[MODEL_SLOW]; /* rounding errors of slow states, compensated in the next step */
#endif
    int started; /* whether there was a sample */
} model_state;

/* Set the initial state that was chosen at export. */
void model_init(model_state *self);

/* Set the initial state again. */
void model_reset(model_state *self);

/* Read the next sample u[MODEL_INPUTS] and write the outputs y[MODEL_OUTPUTS] at its time. */
void model_step(model_state *self, const model_real u[], model_real y[]);

/* The two halves of a step: advance the state with an input from u_now to u_next; compute the outputs for an input u. */
void model_advance(model_state *self, const model_real u_now[], const model_real u_next[]);
void model_output(const model_state *self, const model_real u[], model_real y[]);

/* The state z[MODEL_STATES] at the time of the last sample, in coordinates of the blocks; before it the initial one. */
void model_get_state(const model_state *self, model_real z[]);
void model_set_state(model_state *self, const model_real z[]);

#if MODEL_USER_STATES
/* The same state x[MODEL_STATES] in the coordinates of the system that the network was made from: x = T z. */
void model_get_user_state(const model_state *self, model_real x[]);
#endif

#ifdef __cplusplus
}
#endif

#endif
