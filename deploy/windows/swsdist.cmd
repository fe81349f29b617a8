@echo off
rem swsdist on Windows, in WSL's Linux: put this file and swsdist's wheel (swsdist-*.whl) in one folder, then drop a folder of
rem recordings on this file. The first start installs swsdist. It was not run on Windows: docs/how-to/search-your-archive.md#install
setlocal
if "%~1"=="" (
  echo Drop a folder of recordings on this file.
  pause
  exit /b 2
)
where wsl >nul 2>nul
if errorlevel 1 (
  echo Windows lacks WSL. As an administrator type: wsl --install
  echo Then start Windows again, and drop the folder once more.
  pause
  exit /b 2
)
set "FOLDER=%~1"
set "HERE=%~dp0"
rem WSL writes these two as paths of Linux; D:\ ends with a slash. Words and index lie in a folder of the name and a hash of the path. No quotation mark stands within the command: cmd.exe would end it there; IFS= keeps names with blanks in one piece.
set "WSLENV=FOLDER/p:HERE/p:%WSLENV%"
wsl -e bash -c "IFS=; V=$HOME/.local/share/swsdist; if ! [ -x $V/bin/swsdist ]; then sudo apt-get update && sudo apt-get install -y python3-venv && python3 -m venv $V && $V/bin/pip install ${HERE%%/}/swsdist-*.whl || exit 1; fi; F=${FOLDER%%/}; H=$(echo $F | md5sum); cd $HOME && exec $V/bin/swsdist serve $F --project $HOME/${F##*/}-${H:0:6}/words"
if errorlevel 1 pause
