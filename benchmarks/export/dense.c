/* A dense step as one would write it without knowing of blocks: x <- A x + B u, y = C x + D u, A by rows or by columns. */
#include "measured.h"

static double A[N * N], B[N * M], C[P * N], D[P * M], x[N], next[N];

void prepare(void)
{
    int i;

    for (i = 0; i < N * N; i++) {
        A[i] = (double)(i * 7919 % 1001 - 500) / (500.0 * N);
    }
    for (i = 0; i < N * M; i++) {
        B[i] = 0.1;
    }
    for (i = 0; i < P * N; i++) {
        C[i] = 0.1;
    }
}

void step(const double *u, double *y)
{
    int i;
    int j;

    for (i = 0; i < P; i++) {
        double sum = 0.0;
        for (j = 0; j < N; j++) {
            sum += C[i * N + j] * x[j];
        }
        for (j = 0; j < M; j++) {
            sum += D[i * M + j] * u[j];
        }
        y[i] = sum;
    }
#ifdef BY_ROWS
    for (i = 0; i < N; i++) {
        double sum = 0.0;
        for (j = 0; j < N; j++) {
            sum += A[i * N + j] * x[j];
        }
        for (j = 0; j < M; j++) {
            sum += B[i * M + j] * u[j];
        }
        next[i] = sum;
    }
#else
    for (i = 0; i < N; i++) {
        next[i] = 0.0;
    }
    for (j = 0; j < N; j++) {
        const double own = x[j];
        for (i = 0; i < N; i++) {
            next[i] += A[j * N + i] * own;
        }
    }
    for (j = 0; j < M; j++) {
        for (i = 0; i < N; i++) {
            next[i] += B[j * N + i] * u[j];
        }
    }
#endif
    for (i = 0; i < N; i++) {
        x[i] = next[i];
    }
}
