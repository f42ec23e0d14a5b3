/**
 * `@tgp/core`: what `tgp.config.ts` imports.
 */

/** Gives the configuration back as it is; it exists so that editors can check and complete it. */
export function defineTGPConfig<Config extends object>(config: Config): Config {
  return config;
}

export default defineTGPConfig;
