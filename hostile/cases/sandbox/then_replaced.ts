// expect: ERUNTIME | OK
Promise.prototype.then = function () { return this as never; };
export default async () => {
  await 1;
  return await tgp.list_files('tools').then(() => 1);
};
