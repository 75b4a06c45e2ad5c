/* FMI 2.0 for co-simulation. */
#include "fmi2Functions.h"

#include <stdlib.h>
#include <string.h>

#include "instance.h"

/* [model: token] */
static const char TOKEN[] = "";
/* [end] */

const char *fmi2GetTypesPlatform(void)
{
    return fmi2TypesPlatform;
}

const char *fmi2GetVersion(void)
{
    return fmi2Version;
}

fmi2Component fmi2Instantiate(fmi2String instanceName, fmi2Type fmuType, fmi2String fmuGUID,
                              fmi2String fmuResourceLocation, const fmi2CallbackFunctions *functions, fmi2Boolean visible,
                              fmi2Boolean loggingOn)
{
    if (fmuType != fmi2CoSimulation || fmuGUID == NULL || strcmp(fmuGUID, TOKEN) != 0) {
        if (functions != NULL && functions->logger != NULL) {
            functions->logger(functions->componentEnvironment, instanceName, fmi2Error, "error",
                              "the GUID is that of another model, or the FMU type is not co-simulation");
        }
        return NULL;
    }
    return instance_new();
}

void fmi2FreeInstance(fmi2Component c)
{
    free(c);
}

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean loggingOn, size_t nCategories, const fmi2String categories[])
{
    return fmi2OK;
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
                               fmi2Boolean stopTimeDefined, fmi2Real stopTime)
{
    ((instance *)c)->now.time = startTime;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c)
{
    return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c)
{
    return fmi2OK;
}

fmi2Status fmi2Reset(fmi2Component c)
{
    instance_reset((instance *)c);
    return fmi2OK;
}

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Real value[])
{
    size_t i;

    for (i = 0; i < nvr; i++) {
        if (!instance_get((instance *)c, vr[i], &value[i])) {
            return fmi2Error;
        }
    }
    return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Real value[])
{
    size_t i;

    for (i = 0; i < nvr; i++) {
        if (!instance_set((instance *)c, vr[i], value[i])) {
            return fmi2Error;
        }
    }
    return fmi2OK;
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                       const fmi2Integer order[], const fmi2Real value[])
{
    size_t i;

    for (i = 0; i < nvr; i++) {
        if (order[i] != 1 || !instance_set_rate((instance *)c, vr[i], value[i])) {
            return fmi2Error;
        }
    }
    return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real currentCommunicationPoint, fmi2Real communicationStepSize,
                      fmi2Boolean noSetFMUStatePriorToCurrentPoint)
{
    ((instance *)c)->now.time = currentCommunicationPoint;
    return instance_step((instance *)c, communicationStepSize) ? fmi2OK : fmi2Error;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *FMUstate)
{
    if (*FMUstate == NULL) {
        *FMUstate = malloc(sizeof(snapshot));
    }
    if (*FMUstate == NULL) {
        return fmi2Error;
    }
    memcpy(*FMUstate, &((instance *)c)->now, sizeof(snapshot));
    return fmi2OK;
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate FMUstate)
{
    memcpy(&((instance *)c)->now, FMUstate, sizeof(snapshot));
    return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *FMUstate)
{
    free(*FMUstate);
    *FMUstate = NULL;
    return fmi2OK;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate FMUstate, size_t *size)
{
    *size = sizeof(snapshot);
    return fmi2OK;
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate FMUstate, fmi2Byte serializedState[], size_t size)
{
    if (size < sizeof(snapshot)) {
        return fmi2Error;
    }
    memcpy(serializedState, FMUstate, sizeof(snapshot));
    return fmi2OK;
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte serializedState[], size_t size,
                                   fmi2FMUstate *FMUstate)
{
    if (size != sizeof(snapshot) || fmi2GetFMUstate(c, FMUstate) != fmi2OK) {
        return fmi2Error;
    }
    memcpy(*FMUstate, serializedState, sizeof(snapshot));
    return fmi2OK;
}
