// expect: ERR_ISOLATE_TIMEOUT
export default async () => {
  const key = await crypto.subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits']);
  return crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-512', salt: new Uint8Array(8), iterations: 4_294_967_295 }, key, 8_388_608);
};
