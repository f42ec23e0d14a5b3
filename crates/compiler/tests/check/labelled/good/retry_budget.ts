/** The delays of an exponential backoff with a ceiling, in milliseconds. */
export default function retryBudget({ attempts = 5, baseMs = 100, maxMs = 30_000 }: { attempts?: number; baseMs?: number; maxMs?: number }): number[] {
  return Array.from({ length: attempts }, (_, attempt) => Math.min(maxMs, baseMs * 2 ** attempt));
}
