import _ from 'lodash';
import { z } from 'zod-evil';
import * as core from '@tgp/core';
import date from 'date-fns/../lodash';

/** Packages that are not allowed. */
export default () => [_, z, core, date];
