// A request that changes nothing and loses a race is dropped with the run. The requests of a race are those that were sent in
// the job that began it: its entries are made there, whatever promises are derived from them.

for (const [name, onRejected] of [['race', true], ['any', false]]) {
  const settledFirst = Promise[name];
  const racing = {
    [name](entries) {
      const job = host.job();
      const release = () => {
        host.releaseLookups(job);
      };
      const list = [...entries];
      for (const entry of list) {
        if (entry instanceof Promise) apply(promiseThen, entry, [release, onRejected ? release : () => {}]);
        else if (typeof entry?.then !== 'function') release();
      }
      return apply(settledFirst, this, [list]);
    },
  }[name];
  defineProperty(Promise, name, { __proto__: null, value: racing, writable: true, configurable: true, enumerable: false });
}
