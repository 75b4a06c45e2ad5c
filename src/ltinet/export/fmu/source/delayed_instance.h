/*
 * A running model with delays and an operating point behind either version of FMI.
 *
 * A copy of the core runs for each output delay: outputs that are late by s are those of a core that began s later and
 * whose inputs are late by s beyond their own delays. Inputs are kept as pieces, one for each communication step, so that
 * every copy goes through every jump and corner of its inputs at its exact time, whatever the communication steps are.
 */
#ifndef INSTANCE_H
#define INSTANCE_H

#include <stddef.h>

#include "any_step.h"

/* [model: delay sizes] */
#define MODEL_COPIES 1
#define MODEL_PIECES 64
#define MODEL_LINES_BETWEEN_POINTS 0
/* [end] */

/* A piece of the inputs: straight lines from the beginning of a communication step to its end. */
typedef struct {
    double time;
    double first[MODEL_DIM(MODEL_INPUTS)];
    double last[MODEL_DIM(MODEL_INPUTS)];
} piece;

/* All that changes; plain data, which is saved, restored and serialised as it is. */
typedef struct {
    model_state states[MODEL_COPIES];
    double u[MODEL_DIM(MODEL_INPUTS)];
    double rate[MODEL_DIM(MODEL_INPUTS)]; /* of the inputs, over the next communication step only */
    double time;
    double begun;                /* the time at which the run began, once there was a step */
    int oldest;                  /* the place of the oldest piece that some copy still needs */
    int count;                   /* number of pieces; 0 before the first step */
    int by_rates;                /* whether rates were given for the newest piece */
    piece pieces[MODEL_PIECES];  /* in a ring */
} snapshot;

enum { PREPARED = 4 };

typedef struct {
    snapshot now;
    any_step rests[PREPARED]; /* the last steps that were no whole multiple of the model's own */
    int oldest_rest;
} instance;

enum { FIRST_OUTPUT = MODEL_INPUTS, TIME = MODEL_INPUTS + MODEL_OUTPUTS, VARIABLES = TIME + 1 };

instance *instance_new(void);
void instance_reset(instance *self);

/* Advance by a length of time; 0 if it is not positive, or if the ring buffer of pieces is full. */
int instance_step(instance *self, double length);

/* Values by their references: inputs, then outputs, then time; 0 for a reference that does not exist. */
int instance_get(const instance *self, unsigned int reference, double *value);
int instance_set(instance *self, unsigned int reference, double value);
int instance_set_rate(instance *self, unsigned int reference, double rate);

#endif
