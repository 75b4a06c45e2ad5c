// A process that died without anybody wanting it is worth a second try; one that was cancelled is not.

const STOPPED = 409; // the process that computed is gone; the next question meets a new one

export function persistent(ask) {
  let isCancelled = false;
  return {
    cancelled() { isCancelled = true; },
    async ask(...question) {
      isCancelled = false;
      try {
        return await ask(...question);
      } catch (error) {
        if (error.status !== STOPPED || isCancelled) throw error;
        return ask(...question);
      }
    },
  };
}
