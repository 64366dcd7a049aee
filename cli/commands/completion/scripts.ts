/**
 * The completion script of each shell. It calls `lockgate __complete` at every Tab, so that it also fits later
 * versions. completion.ts describes the arguments and the output of that call.
 */

/**
 * `$1` is the program as typed, `$2` the word at the cursor. bash gets the line itself, since it splits words at
 * colons. After a single offer that ends with `=`, such as `--mac=`, no blank is added.
 */
const BASH = `# bash completion of lockgate
_lockgate() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    case "$word" in
      :files)
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$2")
        ;;
      :folders)
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$2")
        ;;
      *) COMPREPLY+=("$word") ;;
    esac
  done < <("$1" __complete bash "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  case "\${COMPREPLY[0]}" in *=) [ "\${#COMPREPLY[@]}" -eq 1 ] && compopt -o nospace 2>/dev/null ;; esac
}
complete -F _lockgate lockgate
`;

/**
 * `(Q)` removes the quotes of a word. `values` has what is inserted, `shown` the same with the meaning, for the menu.
 * The last line completes at once if zsh has loaded the file as the function itself, at the first Tab.
 */
const ZSH = `#compdef lockgate
# zsh completion of lockgate
_lockgate() {
  local -a values shown
  local word paths='' tab=$'\\t'
  while IFS= read -r word; do
    case "$word" in
      :*) paths="\${word#:}" ;;
      *)
        values+=("\${word%%$tab*}")
        shown+=("\${word/$tab/  -- }")
        ;;
    esac
  done < <("\${(Q)words[1]}" __complete zsh "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)
  case "$paths" in
    files) _files ;;
    folders) _files -/ ;;
  esac
  (( $#values )) && compadd -l -d shown -a -- values
}
compdef _lockgate lockgate
if [ "\${funcstack[1]}" = "_lockgate" ]; then _lockgate; fi
`;

/** `commandline -opc` gives the words before the cursor, `-ct` the word at the cursor, which may have quotes. */
const FISH = `# fish completion of lockgate
function __lockgate_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l clean (string unescape -- $typed 2>/dev/null); and set typed $clean
    for line in ($words[1] __complete fish $words[2..-1] "$typed" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$typed"
            case ':folders'
                __fish_complete_directories "$typed"
            case '*'
                echo $line
        end
    end
end
complete -c lockgate -f -a '(__lockgate_complete)'
`;

/** The script of each supported shell. */
export const COMPLETION_SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
