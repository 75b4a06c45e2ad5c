#include "instance.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

instance *instance_new(void)
{
    instance *self = (instance *)calloc(1, sizeof(instance));

    if (self != NULL) {
        instance_reset(self);
    }
    return self;
}

void instance_reset(instance *self)
{
    int j;

    model_init(&self->now.state);
    for (j = 0; j < MODEL_DIM(MODEL_INPUTS); j++) {
        self->now.u[j] = 0.0;
        self->now.rate[j] = 0.0;
    }
    self->now.time = 0.0;
}

/* The inputs so much time after the beginning of a communication step. */
static void inputs_after(const snapshot *now, double time, double u[])
{
    int j;

    for (j = 0; j < MODEL_INPUTS; j++) {
        u[j] = now->u[j] + now->rate[j] * time;
    }
    (void)now;
    (void)time;
    (void)u;
}

int instance_step(instance *self, double length)
{
    snapshot *now = &self->now;
    double before[MODEL_DIM(MODEL_INPUTS)] = {0};
    double after[MODEL_DIM(MODEL_INPUTS)] = {0};
    double whole;
    double rest;
    double k;
    int j;

    if (!(length > 0.0) || length > DBL_MAX) {
        return 0;
    }
    whole = floor(length / MODEL_DT + 0.5);
    rest = length - whole * MODEL_DT;
    /* Times of communication are differences of rounded numbers: within that, a whole multiple is one. */
    if (fabs(rest) <= 4.0 * DBL_EPSILON * (fabs(now->time) + length)) {
        rest = 0.0;
    } else if (rest < 0.0) {
        whole -= 1.0;
        rest = length - whole * MODEL_DT;
    }
    for (k = 0.0; k < whole; k += 1.0) {
        inputs_after(now, k * MODEL_DT, before);
        inputs_after(now, (k + 1.0) * MODEL_DT, after);
        model_advance(&now->state, before, after);
    }
    inputs_after(now, length, after);
    if (rest > 0.0) {
        inputs_after(now, whole * MODEL_DT, before);
        any_step_prepare(&self->rest, rest);
        any_step_take(&self->rest, &now->state, before, after);
    }
    for (j = 0; j < MODEL_INPUTS; j++) {
        now->u[j] = after[j];
        now->rate[j] = 0.0;
    }
    now->time += length;
    return 1;
}

int instance_get(const instance *self, unsigned int reference, double *value)
{
    if (reference < (unsigned int)FIRST_OUTPUT) {
        *value = self->now.u[reference];
    } else if (reference < (unsigned int)TIME) {
        double y[MODEL_DIM(MODEL_OUTPUTS)];
        model_output(&self->now.state, self->now.u, y);
        *value = y[reference - (unsigned int)FIRST_OUTPUT];
    } else if (reference == (unsigned int)TIME) {
        *value = self->now.time;
    } else {
        return 0;
    }
    return 1;
}

int instance_set(instance *self, unsigned int reference, double value)
{
    if (reference >= (unsigned int)MODEL_INPUTS) {
        return 0;
    }
    self->now.u[reference] = value;
    return 1;
}

int instance_set_rate(instance *self, unsigned int reference, double rate)
{
    if (reference >= (unsigned int)MODEL_INPUTS) {
        return 0;
    }
    self->now.rate[reference] = rate;
    return 1;
}
