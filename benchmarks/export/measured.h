/* What is measured: steps of a model with N states, M inputs and P outputs. */
#ifndef MEASURED_H
#define MEASURED_H

enum { N = MEASURED_STATES, M = MEASURED_INPUTS, P = MEASURED_OUTPUTS, STEPS = MEASURED_STEPS };

void prepare(void);
void step(const double *u, double *y);

#endif
