export interface Args { n: number }
(args as Args).n + 1
