#include "instance.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* [model: delays] */
static const double INPUT_DELAY[MODEL_DIM(MODEL_INPUTS)] = {0};
static const double COPY_DELAY[MODEL_COPIES] = {0};
static const int OUTPUT_COPY[MODEL_DIM(MODEL_OUTPUTS)] = {0};
static const double LONGEST_DELAY = 0;
static const double U0[MODEL_DIM(MODEL_INPUTS)] = {0};
static const double Y0[MODEL_DIM(MODEL_OUTPUTS)] = {0};
/* [end] */

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
    int c;
    int j;

    for (c = 0; c < MODEL_COPIES; c++) {
        model_init(&self->now.states[c]);
    }
    for (j = 0; j < MODEL_DIM(MODEL_INPUTS); j++) {
        self->now.u[j] = U0[j];
        self->now.rate[j] = 0.0;
    }
    self->now.time = 0.0;
    self->now.begun = 0.0;
    self->now.oldest = 0;
    self->now.count = 0;
    self->now.by_rates = 0;
}

static const piece *piece_at(const snapshot *now, int number)
{
    return &now->pieces[(now->oldest + number) % MODEL_PIECES];
}

/* Times are sums and differences of rounded numbers: within this they are the same. */
static double rounding(const snapshot *now, double length)
{
    return 8.0 * DBL_EPSILON * (fabs(now->time) + fabs(now->begun) + length + LONGEST_DELAY);
}

/* The last piece whose beginning, late by a delay, is not after a time; -1 if nothing has arrived. */
static int piece_before(const snapshot *now, double time, double delay, double same)
{
    int low = 0;
    int high = now->count; /* pieces below low have begun, those from high on have not */

    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (piece_at(now, middle)->time + delay <= time + same) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - 1;
}

/* The end of a piece: the beginning of the next one, or the end of the current step. */
static double end_of(const snapshot *now, int number, double stop)
{
    return number + 1 < now->count ? piece_at(now, number + 1)->time : stop;
}

/* An input less u0, late by a delay, at a time in the piece that it passes through; 0 before the first one. */
static double delayed(const snapshot *now, int input, int number, double time, double stop)
{
    const piece *own;
    double share;

    if (number < 0) {
        return 0.0;
    }
    own = piece_at(now, number);
    share = (time - own->time) / (end_of(now, number, stop) - own->time);
    share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    return (own->first[input] + (own->last[input] - own->first[input]) * share) - U0[input];
}

/* Straight lines from v_now to v_next over a length: whole steps of the model first, then what is left. */
static void advance(instance *self, model_state *state, double length, const double v_now[], const double v_next[],
                    double same)
{
    double before[MODEL_DIM(MODEL_INPUTS)] = {0};
    double after[MODEL_DIM(MODEL_INPUTS)] = {0};
    double whole = floor(length / MODEL_DT + 0.5);
    double rest = length - whole * MODEL_DT;
    double k;
    int j;
    int r;

    if (fabs(rest) <= same) {
        rest = 0.0;
    } else if (rest < 0.0) {
        whole -= 1.0;
        rest = length - whole * MODEL_DT;
    }
    for (j = 0; j < MODEL_INPUTS; j++) {
        after[j] = v_now[j];
    }
    for (k = 1.0; k <= whole; k += 1.0) {
        const double share = k == whole && rest == 0.0 ? 1.0 : k * MODEL_DT / length;
        for (j = 0; j < MODEL_INPUTS; j++) {
            before[j] = after[j];
            after[j] = v_now[j] + (v_next[j] - v_now[j]) * share;
        }
        model_advance(state, before, after);
    }
    if (rest > 0.0) {
        for (r = 0; r < PREPARED && self->rests[r].length != rest; r++) {
        }
        if (r == PREPARED) {
            r = self->oldest_rest;
            self->oldest_rest = (r + 1) % PREPARED;
            any_step_prepare(&self->rests[r], rest);
        }
        any_step_take(&self->rests[r], state, after, v_next);
    }
}

/* Take a copy of the core over the newest piece, from one jump or corner of its inputs to the next. */
static void advance_copy(instance *self, int copy, double stop)
{
    const snapshot *now = &self->now;
    const double same = rounding(now, stop - now->time);
    double time = now->begun + COPY_DELAY[copy];

    time = time > now->time + same ? time : now->time;
    while (time < stop - same) {
        double v_now[MODEL_DIM(MODEL_INPUTS)] = {0};
        double v_next[MODEL_DIM(MODEL_INPUTS)] = {0};
        int numbers[MODEL_DIM(MODEL_INPUTS)] = {0};
        double next = stop;
        int j;

        for (j = 0; j < MODEL_INPUTS; j++) {
            const double delay = INPUT_DELAY[j] + COPY_DELAY[copy];
            numbers[j] = piece_before(now, time, delay, same);
            if (numbers[j] + 1 < now->count) {
                const double corner = piece_at(now, numbers[j] + 1)->time + delay;
                next = corner < next - same ? corner : next;
            }
        }
        for (j = 0; j < MODEL_INPUTS; j++) {
            const double delay = INPUT_DELAY[j] + COPY_DELAY[copy];
            v_now[j] = delayed(now, j, numbers[j], time - delay, stop);
            v_next[j] = delayed(now, j, numbers[j], next - delay, stop);
        }
        advance(self, &self->now.states[copy], next - time, v_now, v_next, same);
        time = next;
    }
}

/* Begin a piece; with a linear hold the one before it ends where this one begins. 0 if the ring buffer is full. */
static int begin_piece(snapshot *now, double length)
{
    piece *own;
    int j;

    while (now->count > 1 && piece_at(now, 1)->time + LONGEST_DELAY < now->time - rounding(now, length)) {
        now->oldest = (now->oldest + 1) % MODEL_PIECES;
        now->count--;
    }
    if (now->count == MODEL_PIECES) {
        return 0;
    }
    if (now->count == 0) {
        now->begun = now->time;
    } else if (MODEL_LINES_BETWEEN_POINTS && !now->by_rates) {
        own = &now->pieces[(now->oldest + now->count - 1) % MODEL_PIECES];
        for (j = 0; j < MODEL_INPUTS; j++) {
            own->last[j] = now->u[j];
        }
    }
    own = &now->pieces[(now->oldest + now->count) % MODEL_PIECES];
    own->time = now->time;
    now->by_rates = 0;
    for (j = 0; j < MODEL_INPUTS; j++) {
        own->first[j] = now->u[j];
        own->last[j] = now->u[j] + now->rate[j] * length;
        now->by_rates = now->by_rates || now->rate[j] != 0.0;
    }
    now->count++;
    return 1;
}

int instance_step(instance *self, double length)
{
    snapshot *now = &self->now;
    const piece *newest;
    int c;
    int j;

    if (!(length > 0.0) || length > DBL_MAX || !begin_piece(now, length)) {
        return 0;
    }
    for (c = 0; c < MODEL_COPIES; c++) {
        advance_copy(self, c, now->time + length);
    }
    newest = piece_at(now, now->count - 1);
    for (j = 0; j < MODEL_INPUTS; j++) {
        now->u[j] = newest->last[j];
        now->rate[j] = 0.0;
    }
    now->time += length;
    return 1;
}

/* An input less u0 at the time of communication, delayed for a copy of the core. */
static double delayed_now(const snapshot *now, int input, double delay)
{
    const double same = rounding(now, 0.0);
    const piece *own;
    int number;
    double share;
    double last;

    if (delay <= same) {
        return now->u[input] - U0[input];
    }
    number = piece_before(now, now->time, delay, same);
    if (number + 1 < now->count || number < 0) {
        return delayed(now, input, number, now->time - delay, now->time);
    }
    own = piece_at(now, number); /* the next piece begins with the inputs as they are now */
    last = MODEL_LINES_BETWEEN_POINTS && !now->by_rates ? now->u[input] : own->last[input];
    share = (now->time - delay - own->time) / (now->time - own->time);
    share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    return (own->first[input] + (last - own->first[input]) * share) - U0[input];
}

int instance_get(const instance *self, unsigned int reference, double *value)
{
    const snapshot *now = &self->now;

    if (reference < (unsigned int)FIRST_OUTPUT) {
        *value = now->u[reference];
    } else if (reference < (unsigned int)TIME) {
        const unsigned int output = reference - (unsigned int)FIRST_OUTPUT;
        const double late = COPY_DELAY[OUTPUT_COPY[output]];
        const double begun = now->count > 0 ? now->begun : now->time;
        double v[MODEL_DIM(MODEL_INPUTS)] = {0};
        double w[MODEL_DIM(MODEL_OUTPUTS)] = {0};
        int j;

        *value = Y0[output];
        if (now->time >= begun + late - rounding(now, 0.0)) {
            for (j = 0; j < MODEL_INPUTS; j++) {
                v[j] = delayed_now(now, j, INPUT_DELAY[j] + late);
            }
            model_output(&now->states[OUTPUT_COPY[output]], v, w);
            *value += w[output];
        }
    } else if (reference == (unsigned int)TIME) {
        *value = now->time;
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
