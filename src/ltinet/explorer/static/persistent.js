// Repeats requests that fail because another one was cancelled, which kills the process that computes both.

const STOPPED = 409; // status of a request whose process was killed
const MAX_ATTEMPTS = 3;

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
            if (error.status !== STOPPED || own.isCancelled || turn === MAX_ATTEMPTS) throw error;
          }
        }
      } finally {
        waiting.delete(own);
      }
    },
  };
}
