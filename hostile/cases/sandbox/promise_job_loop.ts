// expect: ERR_ISOLATE_TIMEOUT
export default async () => {
  while (true) await null;
};
