// Ending one question ends the process that computes, and with it what others wait for: these ask again.

const STOPPED = 409; // the process is gone; the next question meets a new one
const TIMES = 3;

export function persistent(ask) {
  const waiting = new Set();
  return {
    cancelled(kind) {
      for (const own of waiting) if (kind === "" || own.kind === kind) own.isCancelled = true;
    },
    async ask(kind, ...question) {
      const own = { kind, isCancelled: false };
      waiting.add(own);
      try {
        for (let turn = 1; ; turn += 1) {
          try {
            return await ask(...question);
          } catch (error) {
            if (error.status !== STOPPED || own.isCancelled || turn === TIMES) throw error;
          }
        }
      } finally {
        waiting.delete(own);
      }
    },
  };
}
