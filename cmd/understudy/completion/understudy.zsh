#compdef understudy
# Completion of understudy for zsh.
#
#   source <(understudy completion zsh)                  this shell, after compinit
#   understudy completion zsh > "${fpath[1]}/_understudy"     every shell

_understudy() {
    local line first="" about
    local -a values abouts suffixes
    local -i i width=0
    local current=${words[CURRENT]}
    while IFS= read -r line; do
        if [[ -z $first ]]; then
            first=$line
            continue
        fi
        values+=("${line%%$'\t'*}")
        abouts+=("${line#*$'\t'}")
        if (( ${#values[-1]} > width )); then width=${#values[-1]}; fi
    done < <(${(Q)words[1]/#\~/$HOME} __complete "=${(Q)current}" "${(@Q)words[2,CURRENT-1]}" 2>/dev/null)

    if (( $#values )); then
        for (( i = 1; i <= $#values; i++ )); do
            about=${abouts[i]:+"${(r:width:)values[i]}  -- ${abouts[i]}"}
            abouts[i]=${${about:-$values[i]}[1,COLUMNS-1]}
        done
        compadd -l -d abouts -a -- values
    fi
    if [[ $first == files* ]]; then
        if [[ $current == --*=* ]]; then compset -P '*='; fi
        suffixes=(${=first#files})
        if (( $#suffixes )); then
            _files -g "*.(${(j:|:)suffixes})"
        else
            _files
        fi
    fi
}

if [[ ${funcstack[1]} == _understudy ]]; then
    _understudy "$@"
else
    compdef _understudy understudy
fi
