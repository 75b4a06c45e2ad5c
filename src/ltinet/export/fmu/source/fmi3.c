/* FMI 3.0 for co-simulation. */
#include "fmi3Functions.h"

#include <stdlib.h>
#include <string.h>

#include "instance.h"

/* [model: token] */
static const char TOKEN[] = "";
/* [end] */

const char *fmi3GetVersion(void)
{
    return fmi3Version;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String instanceName, fmi3String instantiationToken, fmi3String resourcePath,
                                         fmi3Boolean visible, fmi3Boolean loggingOn, fmi3Boolean eventModeUsed,
                                         fmi3Boolean earlyReturnAllowed,
                                         const fmi3ValueReference requiredIntermediateVariables[],
                                         size_t nRequiredIntermediateVariables,
                                         fmi3InstanceEnvironment instanceEnvironment, fmi3LogMessageCallback logMessage,
                                         fmi3IntermediateUpdateCallback intermediateUpdate)
{
    if (instantiationToken == NULL || strcmp(instantiationToken, TOKEN) != 0) {
        if (logMessage != NULL) {
            logMessage(instanceEnvironment, fmi3Error, "error", "the instantiation token is that of another model");
        }
        return NULL;
    }
    return instance_new();
}

void fmi3FreeInstance(fmi3Instance instance)
{
    free(instance);
}

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean loggingOn, size_t nCategories,
                               const fmi3String categories[])
{
    return fmi3OK;
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance self, fmi3Boolean toleranceDefined, fmi3Float64 tolerance,
                                       fmi3Float64 startTime, fmi3Boolean stopTimeDefined, fmi3Float64 stopTime)
{
    ((instance *)self)->now.time = startTime;
    return fmi3OK;
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    return fmi3OK;
}

fmi3Status fmi3EnterStepMode(fmi3Instance instance)
{
    return fmi3OK;
}

fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance)
{
    return fmi3OK;
}

fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance)
{
    return fmi3OK;
}

fmi3Status fmi3Terminate(fmi3Instance instance)
{
    return fmi3OK;
}

fmi3Status fmi3Reset(fmi3Instance self)
{
    instance_reset((instance *)self);
    return fmi3OK;
}

fmi3Status fmi3GetFloat64(fmi3Instance self, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                          fmi3Float64 values[], size_t nValues)
{
    size_t i;

    for (i = 0; i < nValueReferences; i++) {
        if (nValues != nValueReferences || !instance_get((instance *)self, valueReferences[i], &values[i])) {
            return fmi3Error;
        }
    }
    return fmi3OK;
}

fmi3Status fmi3SetFloat64(fmi3Instance self, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                          const fmi3Float64 values[], size_t nValues)
{
    size_t i;

    for (i = 0; i < nValueReferences; i++) {
        if (nValues != nValueReferences || !instance_set((instance *)self, valueReferences[i], values[i])) {
            return fmi3Error;
        }
    }
    return fmi3OK;
}

fmi3Status fmi3DoStep(fmi3Instance self, fmi3Float64 currentCommunicationPoint, fmi3Float64 communicationStepSize,
                      fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *eventHandlingNeeded,
                      fmi3Boolean *terminateSimulation, fmi3Boolean *earlyReturn, fmi3Float64 *lastSuccessfulTime)
{
    instance *own = (instance *)self;

    own->now.time = currentCommunicationPoint;
    *eventHandlingNeeded = fmi3False;
    *terminateSimulation = fmi3False;
    *earlyReturn = fmi3False;
    if (!instance_step(own, communicationStepSize)) {
        *lastSuccessfulTime = own->now.time;
        return fmi3Error;
    }
    *lastSuccessfulTime = own->now.time;
    return fmi3OK;
}

fmi3Status fmi3GetFMUState(fmi3Instance self, fmi3FMUState *FMUState)
{
    if (*FMUState == NULL) {
        *FMUState = malloc(sizeof(snapshot));
    }
    if (*FMUState == NULL) {
        return fmi3Error;
    }
    memcpy(*FMUState, &((instance *)self)->now, sizeof(snapshot));
    return fmi3OK;
}

fmi3Status fmi3SetFMUState(fmi3Instance self, fmi3FMUState FMUState)
{
    memcpy(&((instance *)self)->now, FMUState, sizeof(snapshot));
    return fmi3OK;
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *FMUState)
{
    free(*FMUState);
    *FMUState = NULL;
    return fmi3OK;
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState FMUState, size_t *size)
{
    *size = sizeof(snapshot);
    return fmi3OK;
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState FMUState, fmi3Byte serializedState[], size_t size)
{
    if (size < sizeof(snapshot)) {
        return fmi3Error;
    }
    memcpy(serializedState, FMUState, sizeof(snapshot));
    return fmi3OK;
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance self, const fmi3Byte serializedState[], size_t size,
                                   fmi3FMUState *FMUState)
{
    if (size != sizeof(snapshot) || fmi3GetFMUState(self, FMUState) != fmi3OK) {
        return fmi3Error;
    }
    memcpy(*FMUState, serializedState, sizeof(snapshot));
    return fmi3OK;
}
