from vicinal.cli import main

main()
