// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
export default async () => {
  const bytes = new Uint8Array(16_000_000);
  for (;;) await crypto.subtle.digest('SHA-512', bytes);
};
