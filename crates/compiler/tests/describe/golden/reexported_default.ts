// Another name for a tool.
export { default } from './other';
export * as others from './others';
