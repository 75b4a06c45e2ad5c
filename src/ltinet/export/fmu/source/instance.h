/* A running model behind either version of FMI: its inputs, its state, and communication steps of any length. */
#ifndef INSTANCE_H
#define INSTANCE_H

#include <stddef.h>

#include "any_step.h"

/* All that changes; plain data, which is saved, restored and serialised as it is. */
typedef struct {
    model_state state;
    double u[MODEL_DIM(MODEL_INPUTS)];
    double rate[MODEL_DIM(MODEL_INPUTS)]; /* of the inputs, over the next communication step only */
    double time;
} snapshot;

typedef struct {
    snapshot now;
    any_step rest; /* the last step that was no whole multiple of the model's own */
} instance;

enum { FIRST_OUTPUT = MODEL_INPUTS, TIME = MODEL_INPUTS + MODEL_OUTPUTS, VARIABLES = TIME + 1 };

instance *instance_new(void);
void instance_reset(instance *self);

/* Advance by a length of time; 0 if it is not positive. */
int instance_step(instance *self, double length);

/* Values by their references: inputs, then outputs, then time; 0 for a reference that does not exist. */
int instance_get(const instance *self, unsigned int reference, double *value);
int instance_set(instance *self, unsigned int reference, double value);
int instance_set_rate(instance *self, unsigned int reference, double rate);

#endif
