/** Under the names other worlds use. */
export default () => [global.process, self.process, window.process, globalThis.window?.process];
