/** Uploads a text as a file. */
export default async function upload(args: { url: string; name: string; text: string }): Promise<{ status: number }> {
  const form = new FormData();
  form.append('file', new Blob([args.text], { type: 'text/plain' }), args.name);
  const response = await fetch(args.url, { method: 'POST', body: form });
  if (response.status !== 200 && response.status !== 201) throw new Error(`upload failed with ${response.status}`);
  return { status: response.status };
}
