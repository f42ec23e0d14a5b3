/** Status codes that a client may retry. */
export const RETRYABLE = [408, 425, 429, 500, 502, 503, 504];

/** Whether a request with this status is worth another try. */
export const isRetryable = (status: number): boolean => RETRYABLE.includes(status);
