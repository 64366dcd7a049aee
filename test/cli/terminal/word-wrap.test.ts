// Checks how texts are wrapped at the width of the terminal.
import t from 'tap';
import { wrapWords } from '../../../cli/terminal/word-wrap.js';

t.test('sentences are wrapped at a width; a word that is longer than the width is not broken', async (t) => {
  t.same(wrapWords('a long sentence, and a_word_that_is_far_too_long for it', 16), [
    'a long sentence,',
    'and',
    'a_word_that_is_far_too_long',
    'for it',
  ]);
});
