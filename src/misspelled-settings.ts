import { type Setting, SETTINGS } from './settings';

/** A variable that is no setting, and the setting that was probably meant. Its value is nobody's business. */
export interface MisspelledSetting {
  readonly variable: string;
  readonly nearest: string;
}

/**
 * Finds variables that look like settings and are none: one letter is wrong, missing, too many or swapped with the next,
 * or the last word is missing. A hint, no more: the environment is full of what others read.
 */
export function misspelledSettings(environment: NodeJS.ProcessEnv): readonly MisspelledSetting[] {
  const known = Object.values<Setting<unknown>>(SETTINGS).map(({ variable }) => variable);
  return Object.keys(environment).flatMap((variable) => {
    if (known.includes(variable)) return [];
    const nearest = known.find((setting) => isOneEditApart(variable, setting) || lacksLastWord(variable, setting));
    return nearest === undefined ? [] : [{ variable, nearest }];
  });
}

/** A single word, such as `GRPC`, is too common to be meant for one of ours. */
function lacksLastWord(variable: string, setting: string): boolean {
  return variable.includes('_') && setting.replace(/_[A-Z]+$/, '') === variable;
}

/** Whether one letter of one text is wrong, missing, too many or swapped with the next, seen from the other. */
export function isOneEditApart(one: string, other: string): boolean {
  const shorter = Math.min(one.length, other.length);
  let before = 0;
  while (before < shorter && one[before] === other[before]) before += 1;
  let after = 0;
  while (after < shorter - before && one.at(-1 - after) === other.at(-1 - after)) after += 1;
  const [mine, theirs] = [one.slice(before, one.length - after), other.slice(before, other.length - after)];
  if (mine.length <= 1 && theirs.length <= 1) return true;
  return mine.length === 2 && theirs === `${mine[1]}${mine[0]}`;
}
