export default async () => {
  const log: string[] = [];
  {
    await using a = { async [Symbol.asyncDispose]() { log.push('a'); } };
    using b = { [Symbol.dispose]() { log.push('b'); } };
    log.push('body');
  }
  return log;
};
