/** Signs a payload with HMAC-SHA-256. */
export default async function sign(args: { payload: string; secret: string }): Promise<string> {
  const encoder = new TextEncoder();
  const key = await crypto.subtle.importKey('raw', encoder.encode(args.secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const signature = await crypto.subtle.sign('HMAC', key, encoder.encode(args.payload));
  return btoa(String.fromCharCode(...new Uint8Array(signature)));
}
